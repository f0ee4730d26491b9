//! "Did you mean": the node that a name which is nobody's may have meant.

use claimdir::NodeId;

/// How alike two ids must be, of 1, to be taken for each other.
const ALIKE: f64 = 0.7;
/// Below so many bytes two ids are alike by chance.
const FEW: usize = 5;

/// The id most like `asked`, if one is like it at all. Letters' case does not count, and another number is another name,
/// as is what has only a few letters.
pub(crate) fn like<'a>(asked: &NodeId, ids: &'a [NodeId]) -> Option<&'a NodeId> {
    let asked = asked.as_str().to_lowercase();
    let wordy = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let alike = |id: &NodeId| {
        let id = id.as_str().to_lowercase();
        let is_other = id != asked && (id.len() < FEW || wordy(&id) == wordy(&asked));
        if is_other { 0.0 } else { strsim::normalized_damerau_levenshtein(&asked, &id) }
    };
    let best = ids.iter().map(|id| (alike(id), id)).filter(|(alike, _)| *alike >= ALIKE);
    best.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, id)| id)
}

/// The word most like `asked`, if one is like it at all.
pub(crate) fn word<'a>(asked: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = words.map(|word| (strsim::normalized_damerau_levenshtein(asked, word), word));
    let best = alike.filter(|(alike, _)| *alike >= ALIKE).max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_name() {
        let ids = ["parser", "lexer", "TK-12", "TK-13", "build/parser"].map(|id| NodeId::new(id).unwrap());
        let like = |text: &str| like(&NodeId::new(text).unwrap(), &ids).map(NodeId::as_str);
        for (asked, meant) in [
            ("prser", Some("parser")),
            ("PARSER", Some("parser")),
            ("lxeer", Some("lexer")),
            ("tk-12", Some("TK-12")),
            ("build/prser", Some("build/parser")),
            ("TK-19", None),
            ("deploy", None),
            ("p", None),
        ] {
            assert_eq!(like(asked), meant, "{asked}");
        }
    }
}
