//! Text forms of scalar types: times, quantities, bytes. Knows no schema.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use strata_model::quantity::Quantity;

/// The canonical form (UTC, whole seconds) of an RFC 3339 time.
pub fn time(text: &str) -> Option<String> {
    is_rfc3339(text).then(|| text.parse::<Timestamp>().ok()).flatten().map(|time| {
        // Fractions are cut off, never rounded up.
        let whole = Timestamp::from_second(time.as_second() - i64::from(time.subsec_nanosecond() < 0));
        whole.map_or_else(|_| text.to_owned(), |whole| whole.to_string())
    })
}

/// The canonical form (UTC, six digits of fraction) of an RFC 3339 time that has six digits of fraction.
pub fn micro_time(text: &str) -> Option<String> {
    let fraction = text.split_once('.')?.1;
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    (digits == 6 && is_rfc3339(text))
        .then(|| text.parse::<Timestamp>().ok())
        .flatten()
        .map(|time| format!("{time:.6}"))
}

/// Whether the text has the shape `2006-01-02T15:04:05[.fraction](Z|±07:00)`.
fn is_rfc3339(text: &str) -> bool {
    let shape = |text: &[u8], shape: &[u8]| {
        text.len() == shape.len()
            && text.iter().zip(shape).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'+' => matches!(byte, b'+' | b'-'),
                other => byte == other,
            })
    };
    let bytes = text.as_bytes();
    let Some((date, rest)) = bytes.split_at_checked(19) else { return false };
    let rest = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        other => other,
    };
    shape(date, b"0000-00-00T00:00:00") && (rest == b"Z" || shape(rest, b"+00:00"))
}

/// The canonical form of a quantity: `0.5Gi` → `512Mi`. What is finer or larger than exact arithmetic here reaches stays
/// as it is written.
pub fn quantity(text: &str) -> Option<String> {
    if !is_quantity(text) {
        return None;
    }
    let fine = text.ends_with(['n', 'u']) || text.contains(['e', 'E']);
    let decimals =
        text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    let exact = !fine && decimals <= 3 && !(decimals > 0 && text.ends_with('m'));
    let parsed = if exact { text.parse::<Quantity>().ok() } else { None };
    Some(parsed.map_or_else(|| text.to_owned(), |quantity| quantity.to_string()))
}

/// Whether the text is a quantity: a decimal number with an optional suffix or exponent.
pub fn is_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 15] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = unsigned.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = unsigned.split_at(length);
    let is_number = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
    let is_exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_number && (SUFFIXES.contains(&suffix) || suffix == "Ei" || is_exponent)
}

/// Whether the text is base64 with padding; line breaks are allowed.
pub fn is_base64(text: &str) -> bool {
    if text.contains(['\n', '\r']) {
        return BASE64_STANDARD.decode(text.replace(['\n', '\r'], "")).is_ok();
    }
    BASE64_STANDARD.decode(text).is_ok()
}
