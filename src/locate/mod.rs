//! Where the claim directory is.
