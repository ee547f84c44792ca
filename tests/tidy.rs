//! Rules of the source tree: layers, owners, purity, headers, length of functions, size of types, wording, commit messages,
//! documents.
#![expect(clippy::panic, reason = "a test that cannot go on fails")]

#[path = "tidy/commits.rs"]
mod commits;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/exceptions.rs"]
mod exceptions;
#[path = "tidy/fields.rs"]
mod fields;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/impls.rs"]
mod impls;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/records.rs"]
mod records;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/texts.rs"]
mod texts;
#[path = "tidy/wording.rs"]
mod wording;
