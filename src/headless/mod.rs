//! aye exec: events as lines.
