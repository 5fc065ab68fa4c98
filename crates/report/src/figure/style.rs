//! How a picture is printed: width, font, colours.

/// Size, letters and colours of a picture. The default is for a screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// Width in millimetres, as a journal prescribes it; `None`: that of a screen.
    pub width_mm: Option<f64>,
    /// Font family, or a file of one (`.ttf`, `.otf`); `None`: the bundled one.
    pub font: Option<String>,
    /// Size of its letters, points; on a screen headings are larger.
    pub size_pt: f64,
    /// Panels side by side; `None`: as many as the width has room for.
    pub columns: Option<usize>,
    /// With headline and subtitle.
    pub title: bool,
    /// Greys and dashes instead of colours.
    pub grey: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width_mm: None,
            font: None,
            size_pt: SCREEN_PT,
            columns: None,
            title: true,
            grey: false,
        }
    }
}

impl Style {
    /// Width in units of the drawing, twelve of which are the size of the letters; `screen` where
    /// no width is prescribed.
    pub(super) fn width(&self, screen: f64) -> f64 {
        self.width_mm.map_or(screen, |mm| mm / self.unit_mm())
    }

    /// True if the picture is for paper: one size of letters, narrow margins.
    pub(super) fn is_paper(&self) -> bool {
        self.width_mm.is_some()
    }

    /// Length of a unit of the drawing, millimetres.
    pub(super) fn unit_mm(&self) -> f64 {
        self.size_pt / UNITS_PER_LETTER * MM_PER_POINT
    }

    /// The family and those of the same metrics, in the order in which they are looked for.
    pub(super) fn families(&self) -> Vec<String> {
        let Some(font) = &self.font else {
            return Vec::new();
        };
        let same = CLONES.iter().find(|names| {
            let mut names = names.iter();
            names.any(|name| name.eq_ignore_ascii_case(font))
        });
        let others = same.into_iter().flat_map(|names| names.iter());
        let others = others.filter(|name| !name.eq_ignore_ascii_case(font));
        std::iter::once(font.clone())
            .chain(others.map(|name| (*name).to_owned()))
            .collect()
    }

    /// True if the font is a file.
    pub(super) fn font_file(&self) -> Option<&str> {
        let is_file = |f: &&str| [".ttf", ".otf", ".ttc"].iter().any(|e| f.ends_with(e));
        self.font.as_deref().filter(is_file)
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

/// Letters of an axis on a screen, points.
const SCREEN_PT: f64 = 9.0;
const UNITS_PER_LETTER: f64 = 12.0;
const MM_PER_POINT: f64 = 25.4 / 72.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_in_millimetres_is_one_in_letters() {
        let style = Style {
            width_mm: Some(84.0),
            size_pt: 8.0,
            ..Style::default()
        };
        // 84 mm are 238.1 points, 29.76 letters of 8 points.
        assert!((style.width(960.0) / 12.0 - 29.76).abs() < 0.01);
        assert_eq!(Style::default().width(960.0), 960.0);
    }

    #[test]
    fn a_family_is_followed_by_its_equals() {
        let families = |font: &str| {
            let font = Some(font.to_owned());
            let style = Style {
                font,
                ..Style::default()
            };
            style.families()
        };
        assert_eq!(families("times")[..2], ["times", "Times New Roman"]);
        assert_eq!(families("Arial")[..2], ["Arial", "Helvetica"]);
        assert_eq!(families("Garamond"), ["Garamond"]);
    }
}
