//! State of the prompt history search.

#[derive(Debug)]
pub(crate) struct HistorySearch {
    pub query: String,
    /// Index of the match being shown, counted from the newest.
    pub nth: usize,
    pub found: bool,
    /// Text of the draft before the search started.
    pub draft: String,
}
