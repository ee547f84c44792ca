//! Startup state: requests and input that wait for the session.

/// Requests and input that wait for the session, and the purpose of the screen.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    /// Prompt that is sent as soon as the start is complete.
    pub waiting_prompt: Option<String>,
    /// Whether the model list opens as soon as a session exists.
    pub wants_picker: bool,
    /// Whether the user requested setup, whose data has not arrived yet.
    pub wants_setup: bool,
    /// Whether the session is still reporting interrupted work of the previous process.
    pub recovering: bool,
    /// Note in the transcript about the missing API key, until the key is added.
    pub no_key_note: Option<String>,
    /// Whether the screen only chooses a session and does not start one.
    pub is_session_chooser: bool,
}
