//! Names of cases for people: only the parameters that differ, and only as much of a key as is
//! needed.

/// Keys that take more than one value, each with a short heading: the part after the last dot where
/// that is enough.
pub fn varying<'a>(cases: &'a [Vec<(String, String)>]) -> Vec<(&'a str, &'a str)> {
    let Some(first) = cases.first() else {
        return Vec::new();
    };
    let varies =
        |key: &str, value: &String| cases.iter().any(|c| find(c, key) != Some(value.as_str()));
    let keys: Vec<&str> = first
        .iter()
        .filter(|(key, value)| varies(key, value))
        .map(|(key, _)| key.as_str())
        .collect();
    let short = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alone = |key: &&'a str| keys.iter().filter(|k| short(k) == short(key)).count() == 1;
    keys.iter()
        .map(|key| (*key, if alone(key) { short(key) } else { *key }))
        .collect()
}

/// What tells each case from the others: `reno, mtu 9000`. Empty where there is one case only.
pub fn labels(cases: &[Vec<(String, String)>]) -> Vec<String> {
    let varying = varying(cases);
    let one = |case: &Vec<(String, String)>| {
        let parts = varying.iter().map(|(key, head)| {
            let value = find(case, key).unwrap_or_default();
            // A stack names itself (two of them need their keys), and so does the name that a
            // scenario gives a case.
            if matches!(*head, "stack" | "case") {
                value.to_owned()
            } else {
                format!("{head} {value}")
            }
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    cases.iter().map(one).collect()
}

/// Value of a key.
pub fn find<'a>(params: &'a [(String, String)], key: &str) -> Option<&'a str> {
    params
        .iter()
        .find(|(k, _)| k == key)
        .map(|(_, v)| v.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(params: &[(&str, &str)]) -> Vec<(String, String)> {
        params
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn only_what_differs_is_named() {
        let cases = [
            case(&[
                ("flow.main.stack", "reno"),
                ("path.mtu", "1500"),
                ("path.rtt", "80ms"),
            ]),
            case(&[
                ("flow.main.stack", "cubic"),
                ("path.mtu", "9000"),
                ("path.rtt", "80ms"),
            ]),
        ];
        assert_eq!(
            varying(&cases),
            [("flow.main.stack", "stack"), ("path.mtu", "mtu")]
        );
        assert_eq!(labels(&cases), ["reno, mtu 1500", "cubic, mtu 9000"]);
        assert_eq!(labels(&cases[..1]), [""]);
        let named = [
            case(&[("case", "with a loss")]),
            case(&[("case", "without")]),
        ];
        assert_eq!(labels(&named), ["with a loss", "without"]);
    }

    #[test]
    fn keys_that_end_alike_stay_whole() {
        let cases = [
            case(&[("flow.a.stack", "reno"), ("flow.b.stack", "reno")]),
            case(&[("flow.a.stack", "cubic"), ("flow.b.stack", "bic")]),
        ];
        assert_eq!(labels(&cases)[1], "flow.a.stack cubic, flow.b.stack bic");
    }
}
