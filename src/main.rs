//! The command `claim`.

fn main() {}
