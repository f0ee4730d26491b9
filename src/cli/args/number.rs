//! Numbers as arguments.

use std::ops::RangeInclusive;

/// Reads a whole number within `range`; who gives another one is told the range.
pub(super) fn number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match range.clone().into_inner() {
            (least, u64::MAX) => format!("not a whole number from {least} on"),
            (least, most) => format!("not a whole number from {least} to {most}"),
        })
    }
}
