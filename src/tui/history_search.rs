//! State of the prompt history search.

#[derive(Debug)]
pub(crate) struct HistorySearch {
    pub query: String,
    /// Index of the match, counted from the newest.
    pub nth: usize,
    pub found: bool,
    /// Text of the composer before the search.
    pub draft: String,
}
