//! SQLite in the data directory: sessions and their journals.
