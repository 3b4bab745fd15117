//! Moments as people write them, without a calendar of our own beyond the proleptic Gregorian one.

use anyhow::{Context, bail};

/// Milliseconds since 1970 of `2026-11-30T08:15:00`, with seconds, fractions and zone (`Z`,
/// `+01:00`) if wanted; UTC without a zone, as in Kafka's tools.
pub fn parse(text: &str) -> anyhow::Result<i64> {
    read(text).with_context(|| {
        format!("'{text}': write a time like 2026-11-30T08:15:00, 2026-11-30T08:15:00.250+01:00")
    })
}

fn read(text: &str) -> anyhow::Result<i64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let [year, month, day] = numbers(date, '-')?;
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        bail!("there is no such day");
    }
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let clock = if clock.matches(':').count() == 1 { &format!("{clock}:00") } else { clock };
    let [hour, minute, second] = numbers(clock, ':')?;
    if hour > 23 || minute > 59 || second > 59 {
        bail!("there is no such time of day");
    }
    let days = days_since_1970(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset_seconds(zone)?;
    Ok(seconds * 1000 + millis(fraction)?)
}

fn numbers(text: &str, separator: char) -> anyhow::Result<[i64; 3]> {
    let all = text.split(separator).map(str::parse::<u32>).map(|it| it.map(i64::from));
    let all: Vec<i64> = all.collect::<Result<_, _>>()?;
    <[i64; 3]>::try_from(all).map_err(|_| anyhow::anyhow!("three numbers are needed"))
}

fn millis(fraction: &str) -> anyhow::Result<i64> {
    if !fraction.bytes().all(|it| it.is_ascii_digit()) {
        bail!("the fraction is no number");
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    Ok(digits.parse()?)
}

fn offset_seconds(zone: &str) -> anyhow::Result<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') if zone.len() <= 1 => return Ok(0),
        Some('+') => 1,
        Some('-') => -1,
        _ => bail!("the zone is unreadable"),
    };
    let digits: String = zone[1..].chars().filter(|it| *it != ':').collect();
    if digits.len() != 4 {
        bail!("the zone is unreadable");
    }
    let (hours, minutes) = digits.split_at(2);
    Ok(sign * (hours.parse::<i64>()? * 3600 + minutes.parse::<i64>()? * 60))
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    years + months + day - 1
}
