//! Laws that read the delay: Vegas and what grew from it.
