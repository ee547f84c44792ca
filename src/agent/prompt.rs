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
    /// Branch and commit of the git repository, and what is under way in it, where there is one.
    pub git: Option<String>,
    /// What reads the lines of commands, where it is not `bash`.
    pub shell: Option<&'static str>,
    /// Programs that commands can use.
    pub programs: Vec<&'static str>,
    /// Programs that are not there, each with the file of the project that asks for it.
    pub missing: Vec<(&'static str, &'static str)>,
    /// Instruction files in order of authority, each with where it comes from.
    pub instructions: Vec<(String, String)>,
}

/// The system prompt. It stays the same through a session, so that providers can cache it.
pub fn system_prompt(surroundings: &Surroundings) -> String {
    let Surroundings { workspace, system, date, git, shell, programs, missing, instructions } = surroundings;
    let mut prompt = include_str!("../../assets/system.md").to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(prompt, "\n## Environment\n\n- Workspace: {workspace}\n- System: {system}\n- Date: {date}");
    if let Some(git) = git {
        let _ = writeln!(prompt, "- Git: {git}");
    }
    if let Some(shell) = shell {
        let _ = writeln!(prompt, "- Command shell: {shell}, not bash");
    }
    if !programs.is_empty() {
        let _ = writeln!(prompt, "- Programs: {}", programs.join(", "));
    }
    for (program, file) in missing {
        let _ = writeln!(prompt, "- Not installed: {program}, which {file} needs");
    }
    for (source, text) in instructions {
        let _ = writeln!(prompt, "\n## Instructions from {source}\n\n{}", text.trim_end());
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_says_what_the_place_is_and_what_it_has() {
        let surroundings = Surroundings {
            workspace: "/home/me/shop".to_owned(),
            system: "linux",
            date: "2026-11-21".to_owned(),
            git: None,
            shell: Some("zsh"),
            programs: vec!["git", "cargo"],
            missing: vec![("npm", "package-lock.json")],
            instructions: vec![("AGENTS.md".to_owned(), "Be kind.\n\n".to_owned())],
        };
        let told = "\n## Environment\n\n- Workspace: /home/me/shop\n- System: linux\n- Date: 2026-11-21\n- Command shell: zsh, not bash\n- Programs: git, cargo\n\
                    - Not installed: npm, which package-lock.json needs\n\n## Instructions from AGENTS.md\n\nBe kind.\n";
        assert!(system_prompt(&surroundings).ends_with(told), "{}", system_prompt(&surroundings));
    }
}
