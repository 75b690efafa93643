"""Models: loaded, mapped, and the organisms that ship with the package."""
