//! Secrets and marks: what a claim is known by, and what a write is known by.

use std::fmt;

/// A claim's secret: 128 random bits, opaque, told to the winner only. It goes with every later write.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token of these bits.
    pub(crate) fn of(bits: u128) -> Token {
        Token(format!("{bits:032x}"))
    }

    /// A token of the first 128 bits of a hash.
    pub(crate) fn of_hash(hash: blake3::Hash) -> Token {
        let mut hex = hash.to_hex().to_string();
        hex.truncate(32);
        Token(hex)
    }

    /// What somebody shows as a token. Any text: what is no token matches no hash.
    pub fn shown(text: impl Into<String>) -> Token {
        Token(text.into())
    }

    /// The text to hand to the winner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What a record keeps of it.
    pub fn hash(&self) -> TokenHash {
        TokenHash(blake3::hash(self.0.as_bytes()))
    }
}

impl fmt::Debug for Token {
    /// Tokens don't end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The blake3 hash of a token. Comparing takes the same time wherever two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(blake3::Hash);

impl TokenHash {
    /// 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<TokenHash> {
        blake3::Hash::from_hex(text).ok().map(TokenHash)
    }
}

/// A random number in each record: no two writes have the same, so a record's bytes never recur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteId(pub(in crate::domain) u128);

impl WriteId {
    pub(crate) fn of(random: u128) -> WriteId {
        WriteId(random)
    }

    /// Reads up to 32 hexadecimal digits.
    pub(in crate::domain) fn recorded(hex: String) -> Option<WriteId> {
        u128::from_str_radix(&hex, 16).ok().map(WriteId)
    }

    /// Half as many bits, to make a name the only one of its kind.
    pub(crate) fn half(self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }

    /// Eight random bits, for what only has to scatter.
    pub(in crate::domain) fn low_byte(self) -> u8 {
        self.0 as u8
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
