//! Kernel features for the sandbox, as reported by the kernel itself. [`super::probe`] tests which of them work.

/// Support for each feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Version of the Landlock interface; 0 if there is none.
    pub landlock: u32,
    pub seccomp: bool,
    /// Whether the number of processes can be limited per PID namespace, including for root.
    pub process_limit: bool,
    pub user_namespaces: UserNamespaces,
}

/// Users who can create user namespaces, according to the settings of distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserNamespaces {
    Allowed,
    /// `user.max_user_namespaces` is 0, or the kernel has none.
    Off,
    /// `kernel.unprivileged_userns_clone` is 0.
    OnlyRoot,
    /// AppArmor lets only programs with a profile use them.
    OnlyWithProfile,
}

impl Kernel {
    #[cfg(target_os = "linux")]
    pub(crate) fn detect() -> Self {
        let user_namespaces = match (setting("user/max_user_namespaces"), nix::unistd::geteuid().is_root()) {
            (None | Some(0), _) => UserNamespaces::Off,
            (Some(_), true) => UserNamespaces::Allowed,
            (Some(_), false) if setting("kernel/unprivileged_userns_clone") == Some(0) => UserNamespaces::OnlyRoot,
            (Some(_), false) if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) => {
                UserNamespaces::OnlyWithProfile
            }
            (Some(_), false) => UserNamespaces::Allowed,
        };
        Self {
            landlock: super::filter::landlock_version(),
            seccomp: super::filter::has_seccomp(),
            process_limit: super::filter::limits_process_ids(),
            user_namespaces,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn detect() -> Self {
        Self { landlock: 0, seccomp: false, process_limit: false, user_namespaces: UserNamespaces::Off }
    }
}

/// Returns a number in a file below `/proc/sys`.
#[cfg(target_os = "linux")]
pub(super) fn setting(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}
