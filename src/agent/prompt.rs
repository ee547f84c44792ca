//! System prompt, including facts about the environment.

use std::fmt::Write;

/// Facts about the environment in which the agent works.
#[derive(Debug, Clone)]
pub(crate) struct PromptFacts {
    /// Absolute path of the workspace.
    pub workspace: String,
    /// Operating system, such as `linux`.
    pub system: &'static str,
    /// Current date, which the model would otherwise have to guess.
    pub date: String,
    /// Branch, commit and state of the git repository, if any.
    pub git: Option<String>,
    /// Shell that runs command lines, if it is not `bash`.
    pub shell: Option<&'static str>,
    /// Programs available to commands.
    pub programs: Vec<&'static str>,
    /// Missing programs, each with the project file that indicates that it is needed.
    pub missing: Vec<(&'static str, &'static str)>,
    /// Instruction files in order of authority, as pairs of a source and the content.
    pub instructions: Vec<(String, String)>,
    /// JSON Schema for the final response, if a program reads it.
    pub output_schema: Option<String>,
}

/// Returns the system prompt. It does not change during a session, which allows providers to cache it.
pub(crate) fn system_prompt(surroundings: &PromptFacts) -> String {
    let PromptFacts { workspace, system, date, git, shell, programs, missing, instructions, output_schema } = surroundings;
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
    if let Some(schema) = output_schema {
        let _ = writeln!(
            prompt,
            "\n## Response format\n\nA program reads your final response. After your tool calls, it must be a single JSON value \
            that matches this JSON Schema, without any other text and without a code fence:\n\n{schema}"
        );
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_prompt_describes_the_environment_and_its_programs() {
        let surroundings = PromptFacts {
            workspace: "/home/me/shop".to_owned(),
            system: "linux",
            date: "2026-11-21".to_owned(),
            git: None,
            shell: Some("zsh"),
            programs: vec!["git", "cargo"],
            missing: vec![("npm", "package-lock.json")],
            instructions: vec![("AGENTS.md".to_owned(), "Be kind.\n\n".to_owned())],
            output_schema: None,
        };
        let told = "\n## Environment\n\n- Workspace: /home/me/shop\n- System: linux\n- Date: 2026-11-21\n- Command shell: zsh, not bash\n- Programs: git, cargo\n\
                    - Not installed: npm, which package-lock.json needs\n\n## Instructions from AGENTS.md\n\nBe kind.\n";
        assert!(system_prompt(&surroundings).ends_with(told), "{}", system_prompt(&surroundings));
        let with_schema = PromptFacts { output_schema: Some("{\"type\":\"object\"}".to_owned()), ..surroundings };
        assert!(system_prompt(&with_schema).ends_with("without a code fence:\n\n{\"type\":\"object\"}\n"));
    }
}
