//! Debian's order of versions (deb-version(7)): `6.1.9-1` before `6.1.10-1`, `6.1-1~bpo1` before `6.1-1`.

use std::cmp::Ordering;

/// Compares two package versions as dpkg does.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, upstream_a, revision_a) = split(a);
    let (epoch_b, upstream_b, revision_b) = split(b);
    epoch_a
        .cmp(&epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

/// Epoch, upstream version and revision of a version.
fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// The series of a version: `6.1` of `6.1.192-3`.
pub fn series(version: &str) -> String {
    let (_, upstream, _) = split(version);
    let mut parts = upstream.split(|c: char| !c.is_ascii_digit());
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) if !minor.is_empty() => format!("{major}.{minor}"),
        _ => upstream.to_owned(),
    }
}

fn compare_part(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        // A stretch of non-digits: `~` sorts before the end, the end before letters, letters before the rest.
        loop {
            let (x, y) = (non_digit(a), non_digit(b));
            if x.is_none() && y.is_none() {
                break;
            }
            let order = weight(x).cmp(&weight(y));
            if order != Ordering::Equal {
                return order;
            }
            a = &a[1..];
            b = &b[1..];
        }
        // A stretch of digits: as a number.
        let order = take_number(&mut a).cmp(&take_number(&mut b));
        if order != Ordering::Equal || (a.is_empty() && b.is_empty()) {
            return order;
        }
    }
}

fn non_digit(text: &[u8]) -> Option<u8> {
    text.first().copied().filter(|b| !b.is_ascii_digit())
}

fn weight(byte: Option<u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(b) if b.is_ascii_alphabetic() => i32::from(b),
        Some(b) => i32::from(b) + 256,
    }
}

fn take_number(text: &mut &[u8]) -> u128 {
    let mut number: u128 = 0;
    while let Some((&digit, rest)) = text.split_first()
        && digit.is_ascii_digit()
    {
        number = number.saturating_mul(10).saturating_add(u128::from(digit - b'0'));
        *text = rest;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{Ordering, compare, series};

    #[test]
    fn versions_sort_as_dpkg_sorts_them() {
        let sorted = [
            "5.10.223-1",
            "5.10.262-1",
            "6.1~rc3-1",
            "6.1-1",
            "6.1.9-1",
            "6.1.180-1~deb11u1",
            "6.1.180-1",
            "6.1.192-3",
            "6.1.192-10",
            "6.12.95-1~bpo12+1",
            "6.12.117-1",
            "7.2.13-1",
            "1:1.0-1",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
        assert_eq!(compare("6.01-1", "6.1-1"), Ordering::Equal);
    }

    #[test]
    fn the_series_is_the_first_two_numbers() {
        assert_eq!(series("6.1.192-3"), "6.1");
        assert_eq!(series("6.12.95-1~bpo12+1"), "6.12");
        assert_eq!(series("7.3~rc1-1"), "7.3");
    }
}
