//! Toolchain detection. Finds the programs that build and check a project, and which of them are installed, so the
//! model does not have to find out by trial and error.

use crate::sys::programs::find_present;
use std::path::Path;

/// Programs, each with the top-level files that indicate that a project needs it.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("git", &[]),
    ("gh", &[]),
    ("rg", &[]),
    ("jq", &[]),
    ("curl", &[]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("cmake", &["CMakeLists.txt"]),
    ("ninja", &[]),
    ("gcc", &[]),
    ("clang", &[]),
    ("cargo", &["Cargo.toml"]),
    ("go", &["go.mod"]),
    ("node", &["package.json"]),
    ("npm", &["package-lock.json"]),
    ("pnpm", &["pnpm-lock.yaml"]),
    ("yarn", &["yarn.lock"]),
    ("bun", &["bun.lock", "bun.lockb"]),
    ("deno", &["deno.json", "deno.jsonc"]),
    ("tsc", &[]),
    ("python3", &["pyproject.toml", "setup.py", "requirements.txt"]),
    ("pip", &[]),
    ("uv", &["uv.lock"]),
    ("poetry", &["poetry.lock"]),
    ("pytest", &[]),
    ("ruff", &["ruff.toml"]),
    ("ruby", &["Gemfile"]),
    ("bundle", &["Gemfile.lock"]),
    ("java", &[]),
    ("mvn", &["pom.xml"]),
    ("gradle", &[]),
    ("dotnet", &["global.json"]),
    ("php", &["composer.json"]),
    ("composer", &["composer.lock"]),
    ("elixir", &["mix.exs"]),
    ("zig", &["build.zig"]),
    ("swift", &["Package.swift"]),
    ("terraform", &[]),
    ("docker", &["Dockerfile", "compose.yaml", "docker-compose.yml"]),
    ("kubectl", &[]),
    ("sqlite3", &[]),
    ("psql", &[]),
];

/// Installed programs, and missing programs with the file that indicates that they are needed.
pub(crate) struct Toolchain {
    pub programs: Vec<&'static str>,
    pub missing: Vec<(&'static str, &'static str)>,
}

/// Detects the toolchain from file names, without running any program. `path` is the value of `PATH` that commands
/// receive.
pub(crate) fn detect(workspace: &Path, path: &str) -> Toolchain {
    let programs = find_present(PROGRAMS.iter().map(|(name, _)| *name), path);
    let missing = PROGRAMS.iter().filter(|(name, _)| !programs.contains(name)).filter_map(|(name, files)| {
        let asks = files.iter().find(|file| workspace.join(file).symlink_metadata().is_ok())?;
        Some((*name, *asks))
    });
    Toolchain { missing: missing.collect(), programs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_required_by_project_files_are_reported_as_missing() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("go.mod"), "module a\n").unwrap();
        std::fs::write(place.path().join("Cargo.toml"), "").unwrap();
        let found = detect(place.path(), "");
        assert_eq!(found.programs, [""; 0]);
        assert_eq!(found.missing, [("cargo", "Cargo.toml"), ("go", "go.mod")]);
    }
}
