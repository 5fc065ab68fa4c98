//! How a picture is printed: width, font, colours.

use super::font::Font;

/// Size, letters and colours of a picture. The default is for a screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// Width in millimetres, as a journal prescribes it; `None`: that of a screen.
    pub width_mm: Option<f64>,
    /// Height in millimetres, beside a width; `None`: what the drawing takes.
    pub height_mm: Option<f64>,
    /// Font of its letters; `None`: the bundled one.
    pub font: Option<Font>,
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
            height_mm: None,
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

    /// Height in units of the drawing, where one is prescribed.
    pub(super) fn height(&self) -> Option<f64> {
        let on_paper = self.height_mm.filter(|_| self.is_paper());
        on_paper.map(|mm| mm / self.unit_mm())
    }

    /// Height of a picture that was drawn for paper, millimetres. Axes become no lower than what
    /// two of their numbers take: it may be more than what is prescribed.
    pub fn height_of(&self, svg: &str) -> Option<f64> {
        let (_, rest) = svg.split_once("viewBox=\"0 0 ")?;
        let (size, _) = rest.split_once('"')?;
        let (width, height) = size.split_once(' ')?;
        let (width, height): (f64, f64) = (width.parse().ok()?, height.parse().ok()?);
        Some(height / width * self.width_mm?)
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
        let font = self.font.as_ref();
        font.map_or_else(Vec::new, |font| font.families().to_vec())
    }

    /// The file of the font, if it comes from one.
    #[cfg(feature = "png")]
    pub(super) fn font_file(&self) -> Option<&str> {
        self.font.as_ref()?.file()
    }
}

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
}
