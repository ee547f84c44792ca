//! Kernel features that the sandbox uses, as reported by the kernel. [`super::probe`] tests which of them actually
//! work.

/// The kernel's support for each feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Version of the Landlock interface, or 0 if the kernel does not have it.
    pub landlock: u32,
    pub seccomp: bool,
    /// Whether the number of processes in a PID namespace, including those of root, can be limited.
    pub process_limit: bool,
    pub user_namespaces: UserNamespaces,
}

/// Which users can create user namespaces, according to settings introduced by distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserNamespaces {
    Allowed,
    /// `user.max_user_namespaces` is 0, or the kernel does not support user namespaces.
    Off,
    /// `kernel.unprivileged_userns_clone` is 0.
    OnlyRoot,
    /// AppArmor allows only programs that have a profile to use user namespaces.
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

/// Reads a number from a file below `/proc/sys`. Returns `None` if there is no such number.
#[cfg(target_os = "linux")]
pub(super) fn setting(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}
