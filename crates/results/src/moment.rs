//! Moments of the clock on the wall, to the millisecond, in UTC: as names of directories and for
//! people. Nothing here reads a clock.

use std::fmt;

/// Milliseconds since 1970-01-01 00:00 UTC, as POSIX counts them (no leap seconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// The latest that a name can hold: the end of the year 9999.
    pub const LAST: Moment = Moment(253_402_300_799_999);

    /// As a name of a directory (ISO 8601, basic form): `20261124T132005.123Z`. Names sort as
    /// their moments do.
    pub fn name(self) -> String {
        self.rfc3339().replace(['-', ':'], "")
    }

    /// The moment of such a name.
    pub fn of_name(name: &str) -> Option<Moment> {
        let field = |from, to| name.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (field(0, 4)?, field(4, 6)?, field(6, 8)?);
        let (hour, minute, second) = (field(9, 11)?, field(11, 13)?, field(13, 15)?);
        let years: u64 = (EPOCH..year).map(days_of_year).sum();
        let months: u64 = (1..month).map(|m| days_of_month(year, m)).sum();
        let days = (years + months + day).checked_sub(1)?;
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        let moment = Moment(seconds * 1000 + field(16, 19)?);
        // What is no date, such as a 30th of February, is spelled otherwise.
        (moment.name() == name).then_some(moment)
    }

    /// `2026-11-24T13:20:05.123Z` (RFC 3339).
    pub fn rfc3339(self) -> String {
        let ms = self.0.min(Moment::LAST.0);
        let (seconds, ms) = (ms / 1000, ms % 1000);
        let (mut days, of_day) = (seconds / DAY, seconds % DAY);
        let mut year = EPOCH;
        while days >= days_of_year(year) {
            days -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        let (day, hour, minute, second) = (days + 1, of_day / 3600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// `2026-11-24 13:20:05`, for people.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339()[..19].replace('T', " "))
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const EPOCH: u64 = 1970;
const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_the_dates_of_the_calendar() {
        // date -u -d @SECONDS
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_795_526_405_123, "2026-11-24T13:20:05.123Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (Moment::LAST.0, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Moment(ms).rfc3339(), text);
            assert_eq!(Moment::of_name(&Moment(ms).name()), Some(Moment(ms)));
        }
        assert_eq!(Moment(1_795_526_405_123).name(), "20261124T132005.123Z");
        assert_eq!(Moment(0).to_string(), "1970-01-01 00:00:00");
    }

    #[test]
    fn other_names_are_no_moments() {
        for name in [
            "",
            "series",
            "20260230T000000.000Z",
            "20261124T250000.000Z",
            "20261324T000000.000Z",
            "19691231T235959.999Z",
            "20261124T132005.123",
            "20261124 132005.123Z",
            "+0261124T132005.123Z",
            "99999999T999999.999Z",
            "2026112\u{e9}132005.12Z",
        ] {
            assert_eq!(Moment::of_name(name), None, "{name}");
        }
    }
}
