"""LogicalForms: syllogisms in propositional and modal logic, as yes-no questions."""
