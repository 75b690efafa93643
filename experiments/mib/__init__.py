"""IOI and arithmetic in the form of MIB, the mechanistic interpretability benchmark."""
