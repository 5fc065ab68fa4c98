//! The page: a template made by `web/`, and the data inside it.

use serde::Serialize;

/// The template, with [`TITLE`] and [`DATA`] in it. Built from `web/` by `make web`.
const TEMPLATE: &str = include_str!("../../assets/report.html");
const TITLE: &str = "<!--fullpipe:title-->";
const DATA: &str = "\"fullpipe:data\"";

/// The finished page.
pub(super) fn page(title: &str, data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("strings, numbers and lists only");
    let (before, after) = TEMPLATE
        .split_once(DATA)
        .expect("a test holds the template to its placeholders");
    let before = before.replacen(TITLE, &escape_html(title), 1);
    let json = escape_json(&json);
    let mut out = String::with_capacity(before.len() + json.len() + after.len());
    out += &before;
    out += &json;
    out += after;
    out
}

/// Text inside an element.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// JSON that cannot end the element it stands in, nor open a comment there. `<`, `>` and `&` only
/// occur inside strings.
fn escape_json(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_its_placeholders_once() {
        assert_eq!(TEMPLATE.matches(TITLE).count(), 1);
        assert_eq!(TEMPLATE.matches(DATA).count(), 1);
        assert!(TEMPLATE.find(TITLE) < TEMPLATE.find(DATA));
    }

    #[test]
    fn the_template_loads_nothing() {
        for word in [
            "src=\"",
            "@import",
            "url(http",
            "url(\"",
            "url(//",
            "href=\"http",
            "fetch(",
            "XMLHttpRequest",
        ] {
            assert!(!TEMPLATE.contains(word), "{word}");
        }
    }

    #[test]
    fn a_scenario_cannot_leave_its_element() {
        let text = "</script><script>alert(1)</script><!-- & \u{2028}";
        let made = page(text, &text);
        assert!(!made.contains("alert(1)</script>"));
        assert!(made.contains("&lt;/script&gt;"));
        let start = TEMPLATE.split(DATA).next().unwrap();
        let at = start.len() - TITLE.len() + escape_html(text).len();
        let rest = &made[at..];
        let json = &rest[..rest.find("</script>").unwrap()];
        assert_eq!(serde_json::from_str::<String>(json.trim()).unwrap(), text);
    }
}
