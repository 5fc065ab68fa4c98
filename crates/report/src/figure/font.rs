//! The font of a picture: a family by its name, or that of a file.

/// A family, its equals, and the file if it is to come from one.
#[derive(Clone, Debug, PartialEq)]
pub struct Font {
    /// In the order in which they are looked for.
    families: Vec<String>,
    file: Option<String>,
}

impl Font {
    /// A family, or the one that a file (`.ttf`, `.otf`, `.ttc`, or anything with a `/`) holds.
    ///
    /// # Errors
    /// If the file cannot be read or is no font.
    pub fn parse(text: &str) -> Result<Font, String> {
        let ends = |ending: &&str| text.to_ascii_lowercase().ends_with(*ending);
        match text.contains('/') || [".ttf", ".otf", ".ttc"].iter().any(ends) {
            true => Font::of_file(text),
            false => Ok(Font::named(text)),
        }
    }

    /// A family, one of the same metrics taking its place where it is missing.
    pub fn named(family: &str) -> Font {
        let same = CLONES.iter().find(|names| {
            let mut names = names.iter();
            names.any(|name| name.eq_ignore_ascii_case(family))
        });
        let others = same.into_iter().flat_map(|names| names.iter());
        let others = others.filter(|name| !name.eq_ignore_ascii_case(family));
        Font {
            families: std::iter::once(family.to_owned())
                .chain(others.map(|name| (*name).to_owned()))
                .collect(),
            file: None,
        }
    }

    /// The family of a file: an SVG names it, and in a PDF or PNG it is found under this name.
    #[cfg(feature = "png")]
    fn of_file(file: &str) -> Result<Font, String> {
        let bytes = std::fs::read(file).map_err(|e| format!("cannot read the font: {e}"))?;
        let mut fonts = resvg::usvg::fontdb::Database::new();
        fonts.load_font_data(bytes);
        let family = fonts.faces().find_map(|face| face.families.first());
        let (family, _) = family.ok_or("the file is not a font (TrueType or OpenType)")?;
        Ok(Font {
            families: vec![family.clone()],
            file: Some(file.to_owned()),
        })
    }

    #[cfg(not(feature = "png"))]
    fn of_file(_: &str) -> Result<Font, String> {
        Err("this build reads no font files: write the name of the family".to_owned())
    }

    pub(super) fn families(&self) -> &[String] {
        &self.families
    }

    #[cfg(feature = "png")]
    pub(super) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

/// Families with the metrics of the fonts that journals ask for.
const CLONES: [&[&str]; 3] = [
    &[
        "Times",
        "Times New Roman",
        "Nimbus Roman",
        "TeX Gyre Termes",
        "Liberation Serif",
    ],
    &[
        "Helvetica",
        "Arial",
        "Nimbus Sans",
        "TeX Gyre Heros",
        "Liberation Sans",
    ],
    &[
        "Courier",
        "Courier New",
        "Nimbus Mono PS",
        "TeX Gyre Cursor",
        "Liberation Mono",
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_followed_by_its_equals() {
        let families = |font: &str| Font::parse(font).unwrap().families;
        assert_eq!(families("times")[..2], ["times", "Times New Roman"]);
        assert_eq!(families("Arial")[..2], ["Arial", "Helvetica"]);
        assert_eq!(families("Garamond"), ["Garamond"]);
    }

    /// The letters of every form are those of the file, whatever is installed.
    #[cfg(feature = "pdf")]
    #[test]
    fn a_file_gives_its_letters_to_every_form() {
        use crate::figure::{Chart, Style, pdf, png};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("My.TTF");
        std::fs::write(&file, epaint_default_fonts::HACK_REGULAR).unwrap();
        let style = |font: Option<Font>| Style {
            font,
            ..Style::default()
        };
        let chart = Chart {
            title: "letters".to_owned(),
            ..Chart::default()
        };
        let [bundled, own] = [None, Some(Font::parse(file.to_str().unwrap()).unwrap())].map(style);
        let [plain, svg] = [&bundled, &own].map(|style| chart.svg(style));
        assert!(svg.contains("font-family=\"'Hack'\""), "{svg}");
        let bytes = pdf(&svg, &own).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("Hack") && !text.contains("Ubuntu"), "{text}");
        let [plain, own] = [(plain, bundled), (svg, own)].map(|(s, at)| png(&s, 1.0, &at).unwrap());
        assert_ne!(plain, own);
        let text = dir.path().join("notes.ttf");
        std::fs::write(&text, "no font").unwrap();
        for (file, why) in [
            (text.to_str().unwrap(), "not a font"),
            ("/no/such", "cannot read"),
        ] {
            let error = Font::parse(file).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
