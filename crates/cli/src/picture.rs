//! A file that a picture is written into: its ending decides the form.

use std::path::{Path, PathBuf};

use fullpipe_report::figure::{self, Style};
#[cfg(feature = "png")]
use fullpipe_report::figure::{FontError, RasterError};
use fullpipe_results::store::ResultDir;

use crate::exit::{Exit, Failure};
use crate::output;

/// Such a file, checked before anything is computed.
pub struct Picture {
    place: Place,
    pub form: Form,
}

enum Place {
    File { dir: PathBuf, name: String },
    Stdout,
}

/// Format of the file, told by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Svg,
    #[cfg(feature = "png")]
    Png,
    #[cfg(feature = "pdf")]
    Pdf,
    Csv,
    Tex,
    Markdown,
}

impl Form {
    /// Every form with its ending; pictures before tables.
    const ALL: &[(&str, Form)] = &[
        ("svg", Form::Svg),
        #[cfg(feature = "pdf")]
        ("pdf", Form::Pdf),
        #[cfg(feature = "png")]
        ("png", Form::Png),
        ("csv", Form::Csv),
        ("tex", Form::Tex),
        ("md", Form::Markdown),
    ];

    /// True for rows of text.
    pub fn is_table(self) -> bool {
        matches!(self, Form::Csv | Form::Tex | Form::Markdown)
    }
}

impl Picture {
    /// The file that `flag` names, if `fits` says that its form can be had; `example` is one that
    /// could have been written.
    pub fn named(
        flag: &str,
        file: &Path,
        example: &str,
        fits: impl Fn(Form) -> bool,
    ) -> Result<Self, Failure> {
        let ending = file.extension().and_then(|e| e.to_str());
        let mut known = Form::ALL.iter().filter(|(_, form)| fits(*form));
        let Some((_, form)) = known.find(|(e, _)| Some(*e) == ending) else {
            let endings = Form::ALL.iter().filter(|(_, form)| fits(*form));
            let endings: Vec<String> = endings.map(|(e, _)| format!(".{e}")).collect();
            let (last, others) = endings.split_last().expect("an SVG at least");
            let message = format!(
                "{flag} {}: not a name with {} or {last}",
                file.display(),
                others.join(", ")
            );
            let hint = format!("write for example {example}");
            return Err(Failure::new(Exit::Usage, message).hint(hint));
        };
        // A file with an extension has a name.
        let name = file.file_name().unwrap_or_default();
        let dir = file.parent().filter(|p| !p.as_os_str().is_empty());
        Ok(Self {
            place: Place::File {
                dir: dir.unwrap_or(Path::new(".")).to_owned(),
                name: name.to_string_lossy().into_owned(),
            },
            form: *form,
        })
    }

    /// The same, where `-` is the standard output: of the first form that fits.
    pub fn named_or_output(
        flag: &str,
        file: &Path,
        example: &str,
        fits: impl Fn(Form) -> bool,
    ) -> Result<Self, Failure> {
        let mut forms = Form::ALL.iter().filter(|(_, form)| fits(*form));
        match forms.next() {
            Some((_, form)) if file == Path::new("-") => Ok(Self {
                place: Place::Stdout,
                form: *form,
            }),
            _ => Self::named(flag, file, example, fits),
        }
    }

    /// Writes the picture in its form, with what it was made from.
    ///
    /// # Errors
    /// If it did not fit into the height of the style, too.
    pub fn draw(&self, svg: &str, style: &Style, origin: &str) -> Result<(), Failure> {
        if let (Some(asked), Some(height)) = (style.height_mm, style.height_of(svg))
            && height > asked + ROUNDING_MM
        {
            let message = format!("--height: the picture is {height:.0} mm tall at least");
            let hint = "write a larger height, smaller letters (`--font-size`), `--no-title`, or \
                        fewer panels: `--where KEY=VALUE`, `--columns N`";
            return Err(Failure::new(Exit::Usage, message).hint(hint));
        }
        let origin = format!("{origin}; drawn by fullpipe {}", env!("CARGO_PKG_VERSION"));
        let svg = &figure::described(svg, &origin);
        let bytes = match self.form {
            #[cfg(feature = "png")]
            Form::Png => figure::png(svg, PNG_SCALE, style).map_err(|e| refused(&e))?,
            #[cfg(feature = "pdf")]
            Form::Pdf => figure::pdf(svg, style).map_err(|e| refused(&e))?,
            _ => svg.as_bytes().to_vec(),
        };
        self.write(&bytes)
    }

    /// Writes what is there already.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match &self.place {
            Place::File { dir, name } => {
                let written = ResultDir::write_beside(dir, name, bytes)?;
                output::say(&format!("written: {}", written.display()));
                Ok(())
            }
            Place::Stdout => output::bytes(bytes),
        }
    }
}

#[cfg(feature = "png")]
fn refused(error: &RasterError) -> Failure {
    let message = error.to_string();
    match error {
        RasterError::Svg(_) => Failure::new(Exit::Internal, message),
        RasterError::Font(FontError::Missing(_)) => Failure::new(Exit::Environment, message).hint(
            "install one of them (Liberation Serif, Sans and Mono are in Debian's fonts-liberation), \
             or name a file: `--font FILE.ttf`; an SVG needs no font here",
        ),
        RasterError::Font(FontError::Unusable(_)) => Failure::new(Exit::Usage, message),
    }
}

/// The size of a picture is written with few digits.
const ROUNDING_MM: f64 = 0.2;

/// Pixels of a PNG per unit of its SVG, 96 to the inch: 300 dots per inch on paper.
#[cfg(feature = "png")]
const PNG_SCALE: f32 = 3.125;
