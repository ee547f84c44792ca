//! Names of the programs that a command line starts.

use super::shell::read;

/// Maximum number of names returned for a line.
const MAX: usize = 64;

/// Returns the names of the programs in a command line, including those started by other programs. Names that are known
/// only at run time are omitted.
pub fn programs(line: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for invocation in read(line).parts.iter().flat_map(|part| &part.invocations) {
        let Some(program) = invocation.argv.first().filter(|program| program.is_known()) else { continue };
        if names.len() < MAX && !names.contains(&program.text) {
            names.push(program.text.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::programs;

    #[test]
    fn the_programs_started_by_a_command_are_listed() {
        assert_eq!(programs("ls -la | head && git status; env A=b make x"), ["ls", "head", "git", "make", "env"]);
        // If `X` is empty, the next word is the program.
        assert_eq!(programs("$X y"), ["y"]);
    }
}
