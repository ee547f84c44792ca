//! A command run in a view of its own: what it did is known before any of it is kept.

mod effects;
