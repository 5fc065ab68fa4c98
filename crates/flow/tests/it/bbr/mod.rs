//! BBR in the endpoint: version 3 in the example cases of its draft, both versions against closed
//! forms.

mod cases;
mod closed_forms;
mod path;
