//! Startup state: requests and input that are waiting for the session.

/// Requests and input that are waiting for the session, and what the screen is for.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    /// Prompt to send as soon as the session is ready.
    pub waiting_prompt: Option<String>,
    /// Whether to open the model list as soon as a session exists.
    pub wants_picker: bool,
    /// Whether the user has requested the setup and its data has not arrived yet.
    pub wants_setup: bool,
    /// Whether the setup has just reloaded the policy, which needs no note.
    pub reloads_policy: bool,
    /// Whether the session is still reporting work that was interrupted when the previous process exited.
    pub recovering: bool,
    /// Text of the note in the transcript about the missing API key, until a key is added.
    pub no_key_note: Option<String>,
    /// Whether the screen is only for choosing a session and does not start one.
    pub is_session_chooser: bool,
}
