//! Programs that a line starts, by the names that it uses.

use super::shell::read;

/// More names of one line are not looked at.
const MAX: usize = 64;

/// The names of programs, those that others of the line start among them. What is known only at run time is left out.
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
    fn a_line_names_the_programs_that_it_starts() {
        assert_eq!(programs("ls -la | head && git status; env A=b make x"), ["ls", "head", "git", "make", "env"]);
        // Where `X` is empty, the next word is the program.
        assert_eq!(programs("$X y"), ["y"]);
    }
}
