//! Figures in a few characters.
//!
//! Decides spelling and rounding. What is there never reads as nothing, and what is absent is `-`.

/// Thousandths of a CPU, rounded up as quantities are.
pub fn milli(nano: u64) -> u64 {
    nano.div_ceil(1_000_000)
}

/// CPU in at most six characters: `250m`, `9999m`, `12.5`.
pub fn cpu(milli: Option<u64>) -> String {
    match milli {
        None => "-".to_owned(),
        Some(milli @ 0..10_000) => format!("{milli}m"),
        Some(milli @ 10_000..1_000_000) => format!("{}.{}", milli / 1000, milli % 1000 / 100),
        Some(milli) => (milli / 1000).to_string(),
    }
}

/// Bytes in at most six characters: `0`, `512Ki`, `1.5Mi`, `12.5Gi`, `1023Mi`.
pub fn bytes(bytes: Option<u64>) -> String {
    const UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let Some(bytes) = bytes else {
        return "-".to_owned();
    };
    if bytes == 0 {
        return "0".to_owned();
    }
    let fits = |(shift, _): &(u32, &str)| bytes >> shift > 0;
    let units = (10..).step_by(10).zip(UNITS);
    let Some((shift, unit)) = units.take_while(fits).last() else {
        return format!("{bytes}B");
    };
    let whole = bytes >> shift;
    let rest = u128::from(bytes) - (u128::from(whole) << shift);
    match (rest * 10) >> shift {
        tenths @ 1.. if whole < 100 => format!("{whole}.{tenths}{unit}"),
        _ => format!("{whole}{unit}"),
    }
}

/// A count in at most four characters: `0`, `9999`, `12k`, `3M`.
pub fn count(n: Option<u64>) -> String {
    match n {
        None => "-".to_owned(),
        Some(n @ 0..10_000) => n.to_string(),
        Some(n @ 10_000..1_000_000) => format!("{}k", n / 1000),
        Some(n @ 1_000_000..1_000_000_000) => format!("{}M", n / 1_000_000),
        Some(_) => "lots".to_owned(),
    }
}

/// Seconds withheld in each second, from µs: `0`, `0.84`, `12.5`.
pub fn withheld(usec: Option<u64>) -> String {
    match usec {
        None => "-".to_owned(),
        Some(0) => "0".to_owned(),
        Some(usec @ 1..10_000_000) => {
            let hundredths = usec.div_ceil(10_000);
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
        Some(usec) => format!("{}", usec / 1_000_000),
    }
}

/// A share in hundredths of a percent with one decimal: `12.3%`.
pub fn share(hundredths: Option<u32>) -> String {
    hundredths.map_or_else(
        || "-".to_owned(),
        |share| format!("{}.{}%", share / 100, share % 100 / 10),
    )
}

/// Whole percents, rounded down; `None` of nothing.
pub fn percent(part: Option<u64>, all: Option<u64>) -> Option<u64> {
    let (part, all) = part.zip(all)?;
    let percent = u128::from(part)
        .saturating_mul(100)
        .checked_div(u128::from(all))?;
    u64::try_from(percent).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_their_columns() {
        for (milli, text) in [
            (Some(0), "0m"),
            (Some(9999), "9999m"),
            (Some(12_560), "12.5"),
            (Some(1_024_000), "1024"),
            (None, "-"),
        ] {
            assert_eq!(cpu(milli), text);
        }
        for (n, text) in [
            (Some(0), "0"),
            (Some(1), "1B"),
            (Some(1023), "1023B"),
            (Some(1024), "1Ki"),
            (Some(1536), "1.5Ki"),
            (Some(64 << 20), "64Mi"),
            (Some((1 << 30) - 1), "1023Mi"),
            (Some(u64::MAX), "15.9Ei"),
            (None, "-"),
        ] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10k"),
            (4_194_304, "4M"),
            (u64::MAX, "lots"),
        ] {
            assert_eq!(count(Some(n)), text);
        }
        for (usec, text) in [
            (0, "0"),
            (1, "0.01"),
            (840_000, "0.84"),
            (1_999_999, "2.00"),
            (12_500_000, "12"),
        ] {
            assert_eq!(withheld(Some(usec)), text);
        }
        assert_eq!(share(Some(1234)), "12.3%");
        assert_eq!(share(None), "-");
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(percent(Some(1), Some(0)), None);
        assert_eq!(percent(Some(u64::MAX), Some(1)), None);
        assert_eq!(percent(Some(u64::MAX), Some(u64::MAX)), Some(100));
        assert_eq!(percent(None, Some(1)), None);
    }
}
