//! Resource quantities: `500m`, `1Gi`, `2e3`. Exact integers in thousandths; larger numbers than
//! [`MAX_UNITS`] count as that, as Kubernetes has it.
//! Source of the grammar: the Kubernetes `resource.Quantity` documentation.

use std::fmt;
use std::str::FromStr;

/// A quantity that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no quantity: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
pub struct QuantityError(String);

/// How the quantity was written, and so how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
}

/// An exact amount, held in thousandths. Digits below a thousandth are rounded up, away from zero.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Quantity {
    milli: i128,
    format: Format,
}

/// The largest amount in whole units, and with a minus the smallest.
pub const MAX_UNITS: i64 = i64::MAX;
/// The same in thousandths.
const MAX_MILLI: i128 = MAX_UNITS as i128 * 1000;
/// Digits of a number that is read at all.
const MAX_DIGITS: usize = 128;
/// Digits before the point that can matter, and those behind it: the rest is more than the largest amount, or less than
/// the smallest part.
const DIGITS: (usize, usize) = (28, 9);

const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { milli: 0, format: Format::Decimal };

    /// A whole number.
    pub fn from_units(units: i64) -> Self {
        Self { milli: i128::from(units) * 1000, format: Format::Decimal }
    }

    /// A number of bytes, printed with binary suffixes.
    pub fn from_bytes(bytes: u64) -> Self {
        Self { milli: i128::from(bytes) * 1000, format: Format::Binary }
    }

    /// The amount in thousandths.
    pub fn milli(&self) -> i128 {
        self.milli
    }

    /// The amount in whole units, rounded up.
    pub fn units(&self) -> i128 {
        self.milli.div_euclid(1000) + i128::from(self.milli.rem_euclid(1000) != 0)
    }

    /// The sum; saturates at the ends of the range.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.milli == 0 { other.format } else { self.format };
        Self { milli: self.milli.saturating_add(other.milli), format }
    }

    /// The difference; saturates at the ends of the range.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { milli: self.milli.saturating_sub(other.milli), format: self.format }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.milli == other.milli
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.milli.cmp(&other.milli)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let fault = || QuantityError(text.to_owned());
        let end = text
            .char_indices()
            .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && matches!(c, '+' | '-'))))
            .map_or(text.len(), |(i, _)| i);
        let (number, suffix) = text.split_at(end);
        if let Some((_, shift)) = BINARY.iter().find(|(s, _)| *s == suffix) {
            let milli = scaled(number, 3, 1i128 << shift).ok_or_else(fault)?;
            return Ok(Self { milli, format: Format::Binary });
        }
        let exponent = match DECIMAL.iter().find(|(s, _)| *s == suffix) {
            Some((_, exponent)) => *exponent,
            None if suffix == "E" => 18,
            None => suffix.strip_prefix(['e', 'E']).and_then(|e| e.parse::<i32>().ok()).ok_or_else(fault)?,
        };
        let milli = scaled(number, exponent.checked_add(3).ok_or_else(fault)?, 1).ok_or_else(fault)?;
        Ok(Self { milli, format: Format::Decimal })
    }
}

/// `number × 10^exponent × factor`, rounded up away from zero and capped at the largest amount; `None` where malformed.
fn scaled(number: &str, exponent: i32, factor: i128) -> Option<i128> {
    let negative = number.starts_with('-');
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || digits.len() > MAX_DIGITS {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let magnitude = if whole.len() > DIGITS.0 {
        MAX_MILLI
    } else {
        // What is cut off below can only matter by not being nothing: it rounds up.
        let (kept, rest) = fraction.split_at(fraction.len().min(DIGITS.1));
        let rounded = i128::from(rest.contains(|digit| digit != '0'));
        let mantissa = format!("0{whole}{kept}").parse::<i128>().ok()?.checked_add(rounded)?;
        let shift = exponent.checked_sub(i32::try_from(kept.len()).ok()?)?;
        mantissa.checked_mul(factor).map_or(MAX_MILLI, |amount| shifted(amount, shift))
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// `amount × 10^shift`, rounded up and capped.
fn shifted(amount: i128, shift: i32) -> i128 {
    let value = match (shift >= 0, 10i128.checked_pow(shift.unsigned_abs())) {
        _ if amount == 0 => 0,
        (true, Some(power)) => amount.saturating_mul(power),
        (true, None) => MAX_MILLI,
        (false, Some(power)) => amount / power + i128::from(amount % power != 0),
        (false, None) => 1,
    };
    value.min(MAX_MILLI)
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.milli == 0 {
            return f.write_str("0");
        }
        if self.milli % 1000 != 0 {
            return write!(f, "{}m", self.milli);
        }
        let units = self.milli / 1000;
        if self.format == Format::Binary && units.abs() >= 1024 {
            if let Some((suffix, shift)) = BINARY.iter().rev().find(|(_, s)| units % (1i128 << s) == 0) {
                return write!(f, "{}{suffix}", units >> shift);
            }
            return write!(f, "{units}");
        }
        let (suffix, exponent) = [("E", 18u32), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0)]
            .into_iter()
            .find(|(_, e)| units % 10i128.pow(*e) == 0)
            .unwrap_or(("", 0));
        write!(f, "{}{suffix}", units / 10i128.pow(exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, canonical) in [
            ("0.5Gi", "512Mi"),
            ("1000m", "1"),
            ("500m", "500m"),
            ("0.1", "100m"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("1e3", "1k"),
            ("128974848", "128974848"),
            ("1Ki", "1Ki"),
            ("1025Ki", "1025Ki"),
            ("0", "0"),
            ("1n", "1m"),
            ("-2Mi", "-2Mi"),
            ("3E", "3E"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for text in ["", ".", "1.2.3", "1x", "Gi", "1e", "1e99999999999", "--1", "+-1"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn more_than_the_largest_amount_is_the_largest() {
        let largest = Quantity::from_units(MAX_UNITS);
        let long = "9".repeat(60);
        for text in
            ["9223372036854775807", "9223372036854775808", "99999999999999999999E", "1e300", "9Ei", &long]
        {
            assert_eq!(text.parse::<Quantity>().unwrap(), largest, "{text}");
            assert_eq!(
                format!("-{text}").parse::<Quantity>().unwrap(),
                Quantity::ZERO.minus(largest),
                "-{text}"
            );
        }
        assert_eq!(format!("{long}Ei").parse::<Quantity>().unwrap(), largest);
        for (text, amount) in
            [("1e-300", "1m"), ("0.00000000000000000000000000000000000000001", "1m"), ("0e300", "0")]
        {
            assert_eq!(text.parse::<Quantity>().unwrap(), amount.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn amounts_compare_and_add_exactly() {
        let q = |t: &str| t.parse::<Quantity>().unwrap();
        assert!(q("1Gi") > q("1G"));
        assert_eq!(q("500m").plus(q("0.5")), q("1"));
        assert_eq!(q("1.5").units(), 2);
        assert_eq!(q("1Gi").minus(q("512Mi")).to_string(), "512Mi");
    }
}
