//! What a model is told about its place before the first prompt.

use std::fmt::Write;

/// Facts of the place the agent works in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The workspace, absolute.
    pub workspace: String,
    /// `linux`, `macos`.
    pub system: &'static str,
    /// Today, so that the model does not guess.
    pub date: String,
    /// Branch of the git repository, where there is one.
    pub branch: Option<String>,
    /// Instruction files in order of authority, each with where it comes from.
    pub instructions: Vec<(String, String)>,
}

/// The system prompt. It stays the same through a session, so that providers can cache it.
pub fn system_prompt(surroundings: &Surroundings) -> String {
    let Surroundings { workspace, system, date, branch, instructions } = surroundings;
    let mut prompt = include_str!("../../assets/system.md").to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(prompt, "\n## Where you are\n\n- Workspace: {workspace}\n- System: {system}\n- Date: {date}");
    if let Some(branch) = branch {
        let _ = writeln!(prompt, "- Git branch: {branch}");
    }
    for (source, text) in instructions {
        let _ = writeln!(prompt, "\n## Instructions from {source}\n\n{}", text.trim_end());
    }
    prompt
}
