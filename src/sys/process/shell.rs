//! Shells that can run a line, with the options that prevent them from reading user or project configuration.

use std::fmt;

/// A supported shell. Policy rules assume the syntax of `bash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shell {
    #[default]
    Bash,
    Sh,
    Dash,
    Ksh,
    Zsh,
    Fish,
    Pwsh,
    Cmd,
}

impl Shell {
    pub(crate) const ALL: [Self; 8] = [Self::Bash, Self::Sh, Self::Dash, Self::Ksh, Self::Zsh, Self::Fish, Self::Pwsh, Self::Cmd];

    /// Returns the shell's name, which is also the name of its program.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
            Self::Dash => "dash",
            Self::Ksh => "ksh",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Pwsh => "pwsh",
            Self::Cmd => "cmd",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shell| shell.name() == name)
    }

    /// Describes the shell for the approval prompt, for example as `bash -c`.
    pub(crate) fn description(self) -> String {
        format!("{} {}", self.name(), self.options().last().copied().unwrap_or_default())
    }

    /// Returns the options that precede the line. They keep the shell from reading files first, from interpreting part
    /// of the line as an option, and from prompting.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["--noprofile", "--norc", "-c"],
            // Without `-i` and `-l`, these shells read at most the file in `ENV`, which is not passed to commands.
            Self::Sh | Self::Dash | Self::Ksh => &["-c"],
            Self::Zsh => &["-f", "-c"],
            Self::Fish => &["--no-config", "-c"],
            Self::Pwsh => &["-NoProfile", "-NonInteractive", "-Command"],
            Self::Cmd => &["/d", "/s", "/c"],
        }
    }
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_recognized_only_by_exact_program_name() {
        for shell in Shell::ALL {
            assert_eq!(Shell::by_name(shell.name()), Some(shell));
        }
        assert_eq!(["BASH", "/bin/zsh", "", "powershell"].map(Shell::by_name), [None; 4]);
    }
}
