//! Shells that can run a line, with options that prevent them from reading the user's or the project's configuration.

use std::fmt;

/// A shell by name. Policy rules are written for `bash`.
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

    /// Returns the name, which is also the name of its program.
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

    /// Returns the shell for display in an approval, such as `bash -c`.
    pub(crate) fn description(self) -> String {
        format!("{} {}", self.name(), self.options().last().copied().unwrap_or_default())
    }

    /// Returns the options before the line. With them, the shell reads no file first, takes no part of the line as an
    /// option, and does not prompt.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["--noprofile", "--norc", "-c"],
            // Without `-i` and `-l` they read at most the file named by `ENV`, which commands do not receive.
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
