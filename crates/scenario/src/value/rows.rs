//! One row for each key: the reader, the schema, the reference page, `--set` and the resolver all
//! follow from it.
//!
//! A row of [`keys!`] reads
//!
//! ```text
//! name: kind [default], example, "what it is";
//! ```
//!
//! where the kind is one of those of [`kind!`] and decides the type of the field, and the default
//! one of
//!
//! - nothing: the field is an `Option`;
//! - `[!]`: the same, and the key is required, here or in `[matrix]`;
//! - `[= expression]`: the field is a value;
//! - `[or "words"]`: an `Option`, and what the words say holds without it;
//! - `[off]`: an `Option` that is off without it;
//! - `[shows expression]`: an `Option`; the expression is the text of the default;
//! - `[=> place]`: an `Option` that lands at this place of the table's target, and the default is
//!   what the target has there;
//! - `[get closure, set closure]`: the same where the target holds the value in another form;
//! - `[shows expression, set closure]`: the same where the default is no value;
//! - `[of closure]`: an `Option` that the resolver brings to its target; the default is what the
//!   target has.
//!
//! Behind each but `[=> place]`, `, at "place" "place"`, or `[at ...]` alone, says where the key
//! lands, if a ground has to know: one whose hosts are not ours tells by it what was set by hand.
//!
//! `~ "..."` before the default is the sample of a hint where the example would not do; `@fixed`
//! before the name keeps a key out of `[matrix]`.

/// Something that keys land on, which has a value for each of them before a file says anything.
pub trait Target: Sized {
    /// Before the words of the first variety that has a default of its own.
    const BY: &'static str = "";

    /// Its varieties, each with the word that asks for it.
    fn varieties() -> Vec<(&'static str, Self)>;
}

/// A target that no key lands on.
impl Target for () {
    fn varieties() -> Vec<(&'static str, Self)> {
        Vec::new()
    }
}

/// The default of a key that lands on `T`: a value, or the values of all varieties in parentheses.
pub fn default_of<T: Target>(get: impl Fn(&T) -> Option<String>) -> String {
    let all = T::varieties();
    let values = all.iter().map(|(word, target)| (*word, get(target)));
    by_variety(T::BY, &values.collect::<Vec<_>>())
}

/// Equal values of varieties together, the rarer ones first; one value alone if all have it.
pub fn by_variety(by: &str, all: &[(&str, Option<String>)]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (word, value) in all {
        let Some(value) = value else { continue };
        match groups.iter_mut().find(|(known, _)| known == value) {
            Some((_, words)) => words.push(word),
            None => groups.push((value, vec![word])),
        }
    }
    match groups.as_slice() {
        [] => String::new(),
        [(value, words)] if words.len() == all.len() => (*value).to_owned(),
        _ => {
            groups.sort_by_key(|(_, words)| words.len());
            let texts = groups.iter().map(|(value, words)| {
                let value = value.trim_matches(['(', ')']);
                format!("{}: {value}", words.join(", "))
            });
            format!("({by}{})", texts.collect::<Vec<_>>().join("; "))
        }
    }
}

/// A name or an example as the file has it: `r#where` is `where`, and `()` is nothing.
pub const fn spelled(tokens: &'static str) -> &'static str {
    match tokens.as_bytes() {
        b"()" => "",
        [b'r', b'#', name @ ..] if name[0] != b'"' => match std::str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => tokens,
        },
        _ => tokens,
    }
}

/// Tables one after the other, in one.
pub const fn concat<const N: usize>(parts: &[&[super::Key]]) -> [super::Key; N] {
    let mut all = [parts[0][0]; N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[at] = parts[part][i];
            (i, at) = (i + 1, at + 1);
        }
        part += 1;
    }
    assert!(at == N);
    all
}

/// Kinds as rows write them.
#[macro_export]
macro_rules! kind {
    (text) => { $crate::value::Kind::Text };
    (name) => { $crate::value::Kind::Name };
    (flag) => { $crate::value::Kind::Flag };
    (fraction) => { $crate::value::Kind::Fraction };
    (rate) => { $crate::value::Kind::Rate };
    (zero_rate) => { $crate::value::Kind::ZeroRate };
    (size) => { $crate::value::Kind::Size };
    (window) => { $crate::value::Kind::Window };
    (volume) => { $crate::value::Kind::Volume };
    (buffer) => { $crate::value::Kind::Buffer };
    (stack) => { $crate::value::Kind::Stack };
    (seeds) => { $crate::value::Kind::Seeds };
    (bounds) => { $crate::value::Kind::Bounds };
    (tolerance) => { $crate::value::Kind::Tolerance };
    (free) => { $crate::value::Kind::Free };
    (settings) => { $crate::value::Kind::Settings };
    (parsed($type:ty)) => {
        $crate::value::Kind::Parsed {
            what: <$type as $crate::value::Parsed>::WHAT,
            check: |text| <$type as $crate::value::Parsed>::parse(text).map(|_| ()),
        }
    };
    // From zero, and above zero.
    (time) => { $crate::value::kind!(span(0, $crate::value::YEAR)) };
    (moment) => { $crate::value::kind!(span(1, $crate::value::YEAR)) };
    (number) => { $crate::value::kind!(real(f64::MIN, f64::MAX)) };
    (real($min:expr, $max:expr)) => {
        $crate::value::Kind::Real { min: $min, max: $max }
    };
    (whole($min:expr, $max:expr, $unit:expr)) => {
        $crate::value::Kind::Whole { min: $min, max: $max, unit: $unit }
    };
    // Beyond 32 bits.
    (long($min:expr, $max:expr, $unit:expr)) => { $crate::value::kind!(whole($min, $max, $unit)) };
    (span($min:expr, $max:expr)) => {
        $crate::value::Kind::Span { min: $min, max: $max }
    };
    (segments($min:expr, $max:expr)) => {
        $crate::value::Kind::Segments { min: $min, max: $max }
    };
    (word($type:ty)) => {
        $crate::value::Kind::Word(<$type as $crate::value::Words>::WORDS)
    };
    (table($type:ty)) => {
        $crate::value::Kind::Table(<$type as $crate::value::Table>::KEYS)
    };
    (tables($type:ty)) => {
        $crate::value::Kind::Tables(<$type as $crate::value::Table>::KEYS)
    };
    (many($($kind:tt)*)) => { $crate::value::Kind::OneOrMany(&$crate::value::kind!($($kind)*)) };
    (off($($kind:tt)*)) => { $crate::value::Kind::OrOff(&$crate::value::kind!($($kind)*)) };
    (either($a:ident $(($($x:tt)*))?, $b:ident $(($($y:tt)*))?)) => {
        $crate::value::Kind::Either(
            &$crate::value::kind!($a $(($($x)*))?),
            &$crate::value::kind!($b $(($($y)*))?),
        )
    };
}

/// The type that a value of a kind has.
#[macro_export]
macro_rules! type_of {
    (text) => { String };
    (name) => { String };
    (flag) => { bool };
    (fraction) => { f64 };
    (rate) => { fullpipe_units::Rate };
    (zero_rate) => { fullpipe_units::Rate };
    (size) => { fullpipe_units::Bytes };
    (window) => { fullpipe_units::WindowSize };
    (volume) => { fullpipe_units::WindowSize };
    (buffer) => { fullpipe_units::BufferSize };
    (stack) => { Box<fullpipe_cc::StackSpec> };
    (seeds) => { $crate::value::Seeds };
    (bounds) => { $crate::value::Bounds };
    (tolerance) => { $crate::value::Tolerance };
    (free) => { $crate::value::Free };
    (settings) => { $crate::value::Settings };
    (parsed($type:ty)) => { $type };
    (time) => { fullpipe_units::Span };
    (moment) => { fullpipe_units::Span };
    (number) => { f64 };
    (real($($range:tt)*)) => { f64 };
    (whole($($range:tt)*)) => { u32 };
    (long($($range:tt)*)) => { u64 };
    (span($($range:tt)*)) => { fullpipe_units::Span };
    (segments($($range:tt)*)) => { fullpipe_units::Segments };
    (word($type:ty)) => { $type };
    (table($type:ty)) => { $crate::value::Sub<$type> };
    (tables($type:ty)) => { Vec<$crate::value::Sub<$type>> };
    (many($($kind:tt)*)) => { Vec<$crate::value::type_of!($($kind)*)> };
    (off($($kind:tt)*)) => { $crate::value::type_of!($($kind)*) };
    (either($a:ident $(($($x:tt)*))?, $b:ident $(($($y:tt)*))?)) => {
        $crate::value::Either<
            $crate::value::type_of!($a $(($($x)*))?),
            $crate::value::type_of!($b $(($($y)*))?),
        >
    };
}

/// The places that a row lands on.
#[macro_export]
macro_rules! fields {
    (=> $($place:tt)+) => { &[stringify!($($place)+)] };
    (at $($field:literal)+) => { &[$($field),+] };
    (! , at $($field:literal)+) => { &[$($field),+] };
    (off, at $($field:literal)+) => { &[$($field),+] };
    ($word:ident $value:expr, at $($field:literal)+) => { &[$($field),+] };
    ($word:ident $value:expr, set $set:expr, at $($field:literal)+) => { &[$($field),+] };
    ($($default:tt)*) => { &[] };
}

/// The type of a row's field.
#[macro_export]
macro_rules! field {
    ([= $($default:tt)*] $($type:tt)*) => { $($type)* };
    ([$($default:tt)*] $($type:tt)*) => { Option<$($type)*> };
}

/// The value of a row's field.
#[macro_export]
macro_rules! value_or {
    ([= $default:expr] $given:expr) => {
        $given.unwrap_or_else(|| $default)
    };
    ([$($default:tt)*] $given:expr) => {
        $given
    };
}

/// The default of a row, for a reader.
#[macro_export]
macro_rules! default {
    ($target:ty, $type:ty; $(at $($field:literal)+)?) => { $crate::value::Default::None };
    ($target:ty, $type:ty; ! $(, at $($field:literal)+)?) => {
        $crate::value::Default::Required
    };
    ($target:ty, $type:ty; or $words:expr $(, at $($field:literal)+)?) => {
        $crate::value::Default::Words($words)
    };
    ($target:ty, $type:ty; off $(, at $($field:literal)+)?) => {
        $crate::value::Default::Value(|| format!("{:?}", $crate::value::OFF))
    };
    ($target:ty, $type:ty; shows $text:expr, set $set:expr $(, at $($field:literal)+)?) => {
        $crate::value::default!($target, $type; shows $text)
    };
    ($target:ty, $type:ty; shows $text:expr) => {
        $crate::value::Default::Value(|| $text)
    };
    ($target:ty, $type:ty; = $default:expr) => {
        $crate::value::Default::Value(|| {
            let value: $type = $default;
            $crate::value::Written::written(&value)
        })
    };
    ($target:ty, $type:ty; => $($place:tt)+) => {
        $crate::value::default!($target, $type; of |target| Some(Clone::clone(&target.$($place)+)))
    };
    ($target:ty, $type:ty; get $get:expr, set $set:expr $(, at $($field:literal)+)?) => {
        $crate::value::default!($target, $type; of $get)
    };
    ($target:ty, $type:ty; of $get:expr $(, at $($field:literal)+)?) => {
        $crate::value::Default::Value(|| {
            $crate::value::default_of::<$target>(|target| {
                let get: fn(&$target) -> Option<$type> = $get;
                get(target).map(|value| $crate::value::Written::written(&value))
            })
        })
    };
}

/// Whether a row's value comes to its target by itself.
#[macro_export]
macro_rules! lands {
    (=> $($place:tt)+) => {
        true
    };
    ($word:ident $value:expr, set $($rest:tt)*) => {
        true
    };
    ($($default:tt)*) => {
        false
    };
}

/// Brings the value of a row to its target.
#[macro_export]
macro_rules! land {
    ($target:expr, $type:ty, $given:expr; => $($place:tt)+) => {
        if let Some(value) = $given {
            $target.$($place)+ = Clone::clone(value);
        }
    };
    ($target:expr, $type:ty, $given:expr; get $get:expr, set $set:expr $(, at $($at:literal)+)?) => {
        if let Some(value) = $given {
            let set: fn(&mut Self::Target, $type) = $set;
            set($target, Clone::clone(value));
        }
    };
    ($target:expr, $type:ty, $given:expr; shows $text:expr, set $set:expr $(, at $($at:literal)+)?) => {
        $crate::value::land! { $target, $type, $given; get |_| None, set $set }
    };
    ($target:expr, $type:ty, $given:expr; $($default:tt)*) => {};
}

/// A table of keys, as a struct with a field and a constant for each: `table.jitter` is the value,
/// `Table::jitter` the key. The word of a kind chooses among the keys of `Table by Words`.
#[macro_export]
macro_rules! keys {
    ($(#[$meta:meta])* $table:ident { $($rows:tt)* }) => {
        $crate::value::keys! { @rows [None] $(#[$meta])* $table => () { $($rows)* } }
    };
    ($(#[$meta:meta])* $table:ident by $words:ident { $($rows:tt)* }) => {
        $crate::value::keys! {
            @rows [Some($crate::value::owners::<$words>)]
            $(#[$meta])* $table => () { $($rows)* }
        }
    };
    ($(#[$meta:meta])* $table:ident => $target:ty { $($rows:tt)* }) => {
        $crate::value::keys! { @rows [None] $(#[$meta])* $table => $target { $($rows)* } }
    };
    (@rows [$owners:expr] $(#[$meta:meta])* $table:ident => $target:ty { $(
        $(@$fixed:ident)? $name:ident: $kind:ident $(($($range:tt)*))? $(~ $sample:literal)?
        $([$($default:tt)*])?, $example:tt, $doc:expr;
    )* }) => {
        $(#[$meta])*
        // Some keys are only read where nobody knows the table: those of `[matrix]`, names, lists
        // of tables.
        #[allow(dead_code)]
        #[derive(Clone, Debug)]
        pub struct $table {
            $(#[doc = $doc]
            pub $name: $crate::value::field!(
                [$($($default)*)?] $crate::value::type_of!($kind $(($($range)*))?)
            ),)*
        }

        #[allow(non_upper_case_globals)]
        impl $table {
            $(#[doc = $doc] pub const $name: $crate::value::Key =
                $crate::value::Key {
                    name: $crate::value::spelled(stringify!($name)),
                    kind: $crate::value::kind!($kind $(($($range)*))?),
                    default: $crate::value::default!(
                        $target, $crate::value::type_of!($kind $(($($range)*))?);
                        $($($default)*)?
                    ),
                    example: $crate::value::spelled(stringify!($example)),
                    sample: {
                        let example = $crate::value::spelled(stringify!($example));
                        $(let example = { let _ = example; $sample };)?
                        example
                    },
                    doc: $doc,
                    owners: $owners,
                    varies: true $(&& { let $fixed = false; $fixed })?,
                    fields: $crate::value::fields!($($($default)*)?),
                };
            )*
        }

        impl $crate::value::Table for $table {
            const KEYS: &'static [$crate::value::Key] = &[$(Self::$name),*];

            fn read(record: &$crate::value::Record) -> Self {
                Self {
                    $($name: $crate::value::value_or!(
                        [$($($default)*)?] record.get(&Self::$name)
                    ),)*
                }
            }
        }

        impl $crate::value::Lands for $table {
            type Target = $target;

            #[allow(unused_variables)]
            fn land(&self, target: &mut $target) {
                $($crate::value::land! {
                    target, $crate::value::type_of!($kind $(($($range)*))?), &self.$name;
                    $($($default)*)?
                })*
            }

            #[allow(unused_variables)]
            fn land_key(&self, key: &$crate::value::Key, target: &mut $target) -> bool {
                $(if key.name == Self::$name.name {
                    $crate::value::land! {
                        target, $crate::value::type_of!($kind $(($($range)*))?), &self.$name;
                        $($($default)*)?
                    }
                    return $crate::value::lands!($($($default)*)?);
                })*
                false
            }
        }
    };
}

/// Keys that land on something.
pub trait Lands {
    type Target;

    /// Sets what is given; the rest stays.
    fn land(&self, target: &mut Self::Target);

    /// Sets what one key gives; false if the resolver does that, not the row.
    fn land_key(&self, key: &super::Key, target: &mut Self::Target) -> bool;
}

/// A table made of groups of keys, one after the other.
#[macro_export]
macro_rules! tables {
    ($($(#[$meta:meta])* $table:ident { $($field:ident: $group:ident),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[allow(dead_code)]
            #[derive(Clone, Debug)]
            pub struct $table {
                $(pub $field: $group,)*
            }

            impl $crate::value::Table for $table {
                const KEYS: &'static [$crate::value::Key] =
                    &$crate::value::concat::<{
                        0 $(+ <$group as $crate::value::Table>::KEYS.len())*
                    }>(&[$(<$group as $crate::value::Table>::KEYS),*]);

                fn read(record: &$crate::value::Record) -> Self {
                    Self {
                        $($field: <$group as $crate::value::Table>::read(record),)*
                    }
                }
            }
        )*
    };
}

/// Words of the file for the variants of an enum, which is made here if it begins with `enum`.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* enum $type:ident {
        $($variant:ident = $word:literal, $doc:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $(#[doc = $doc] $variant,)*
        }
        $crate::value::words! { $type { $($variant = $word, $doc;)* } }
    };
    ($type:ident { $($variant:ident = $word:literal, $doc:expr;)* }) => {
        impl $crate::value::Words for $type {
            const WORDS: &'static [$crate::value::Word] =
                &[$($crate::value::Word { word: $word, doc: $doc }),*];
            const ALL: &'static [Self] = &[$($type::$variant),*];

            fn word(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)*
                }
            }
        }

        impl $crate::value::Typed for $type {
            fn of(value: &$crate::value::Value) -> Option<Self> {
                $crate::value::of_word(value)
            }
        }

        impl $crate::value::Written for $type {
            fn written(&self) -> String {
                $crate::value::Written::written(
                    &$crate::value::Words::word(*self),
                )
            }
        }
    };
}

/// A key of a kind: whether it may be missing, and its default and what it is, if those are the
/// kind's own.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub key: super::Key,
    pub required: bool,
    pub default: Option<fn() -> String>,
    pub doc: Option<&'static str>,
}

/// Words of kinds that have keys of their own.
pub trait Kinds: super::Words {
    /// Keys of the kind, in the order in which hints list them.
    fn own(self) -> &'static [Own];
}

/// Kinds, each with its keys.
pub type Owners = Vec<(&'static str, &'static [Own])>;

/// All kinds of `K`.
pub fn owners<K: Kinds>() -> Owners {
    let all = K::ALL.iter();
    all.map(|kind| (kind.word(), kind.own())).collect()
}

/// What a key is, behind the words of the kinds that have it: `red, adaptive-red: ...`. Nothing
/// stands before it if all kinds have it, or none.
pub fn doc_by_kind(key: &super::Key, owners: &Owners) -> String {
    let of_kind = |(word, keys): &(&'static str, &'static [Own])| {
        let own = keys.iter().find(|own| own.key.name == key.name)?;
        Some((*word, own.doc.unwrap_or(key.doc)))
    };
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (word, doc) in owners.iter().filter_map(of_kind) {
        match groups.iter_mut().find(|(known, _)| *known == doc) {
            Some((_, words)) => words.push(word),
            None => groups.push((doc, vec![word])),
        }
    }
    let everyone = groups.iter().all(|(_, words)| words.len() == owners.len());
    if everyone {
        return key.doc.to_owned();
    }
    let texts = groups.iter();
    let texts = texts.map(|(doc, words)| format!("{}: {doc}", words.join(", ")));
    texts.collect::<Vec<_>>().join("; ")
}

/// Whether a key of a kind may be missing.
#[macro_export]
macro_rules! own {
    ($rows:ident, $name:ident;) => {
        $crate::value::own!($rows, $name, false, None)
    };
    ($rows:ident, $name:ident; !) => {
        $crate::value::own!($rows, $name, true, None)
    };
    ($rows:ident, $name:ident; = $type:ty, $default:expr) => {
        $crate::value::own!(
            $rows,
            $name,
            false,
            Some(|| {
                let value: $type = $default;
                $crate::value::Written::written(&value)
            })
        )
    };
    ($rows:ident, $name:ident, $required:expr, $default:expr) => {
        $crate::value::Own {
            key: $rows::$name,
            required: $required,
            default: $default,
            doc: None,
        }
    };
}

/// What a kind says of a key that is not in its variant.
#[macro_export]
macro_rules! own_doc {
    () => {
        None
    };
    ($doc:literal) => {
        Some($doc)
    };
}

/// The value of a kind's key: what the row says, or the kind's default; nothing at all without one
/// that is required.
#[macro_export]
macro_rules! own_value {
    ($given:expr;) => {
        Clone::clone(&$given)
    };
    ($given:expr; !) => {
        Clone::clone(&$given)?
    };
    ($given:expr; = $type:ty, $default:expr) => {
        Clone::clone(&$given).unwrap_or_else(|| $default)
    };
}

/// Kinds that a word of a table chooses, as an enum of typed variants whose keys are rows of the
/// table.
///
/// ```text
/// Variant = "word", "what it is" => {
///     key: type, key: type [!], key: type [= type, default]
/// } + [Table::key];
/// ```
///
/// A key with `!` is required, and those after `+` belong to the kind without being fields of its
/// variant; `Table::key => "what it is"` where that is not what its row says.
#[macro_export]
macro_rules! kinds {
    ($(#[$meta:meta])* $kinds:ident of $rows:ident, $(#[$word_meta:meta])* by $words:ident { $(
        $variant:ident = $word:literal, $doc:expr => {
            $($name:ident: $type:ty $([$($need:tt)*])?),* $(,)?
        } $(+ [$($more:expr $(=> $of_kind:literal)?),* $(,)?])?;
    )* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub enum $kinds {
            $(#[doc = $doc] $variant { $($name: $type),* },)*
        }

        $crate::value::words! {
            $(#[$word_meta])*
            enum $words { $($variant = $word, $doc;)* }
        }

        impl $crate::value::Kinds for $words {
            fn own(self) -> &'static [$crate::value::Own] {
                match self {
                    $($words::$variant => &[
                        $($crate::value::own!($rows, $name; $($($need)*)?),)*
                        $($($crate::value::Own {
                            key: $more,
                            required: false,
                            default: None,
                            doc: $crate::value::own_doc!($($of_kind)?),
                        },)*)?
                    ],)*
                }
            }
        }

        impl $words {
            /// The kind with its values; `None` if one is missing that it cannot do without.
            #[allow(unused_variables)]
            pub fn with(self, rows: &$rows) -> Option<$kinds> {
                Some(match self {
                    $($words::$variant => $kinds::$variant {
                        $($name: $crate::value::own_value!(rows.$name; $($($need)*)?),)*
                    },)*
                })
            }
        }
    };
}

pub use {
    default, field, fields, keys, kind, kinds, land, lands, own, own_doc, own_value, tables,
    type_of, value_or, words,
};
