"""False positives, power and coverage of the tests in reports, on simulated studies."""
