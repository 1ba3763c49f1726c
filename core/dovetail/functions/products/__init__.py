"""Products of matrices and vectors, contractions and convolutions."""
