//! Abbreviation of the home directory in paths, such as `~/src/greeter`.

use std::path::Path;

/// Returns a path for display: `~` for `home` itself, `~/…` for paths below `home`, and any other path unchanged. If
/// `home` is `/`, no path is abbreviated.
pub(crate) fn abbreviate_home(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(_) | Err(_) if home.parent().is_none() => path.display().to_string(),
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_components_of_a_valid_home_are_abbreviated() {
        for (path, home, expected) in [
            ("/home/me/src/greeter", "/home/me", "~/src/greeter"),
            ("/home/me", "/home/me", "~"),
            ("/home/me/", "/home/me", "~"),
            ("/home/melissa/src", "/home/me", "/home/melissa/src"),
            ("/tmp/x", "/home/me", "/tmp/x"),
            ("/tmp/x", "/", "/tmp/x"),
            ("/", "/", "/"),
            ("src/a", "", "src/a"),
        ] {
            assert_eq!(abbreviate_home(Path::new(path), Path::new(home)), expected, "{path} in {home}");
        }
    }
}
