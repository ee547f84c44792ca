use super::*;
use crate::sys::process::{End, Environment, Finished, Helper, ProcessError, Spec, command_environment, run};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A place on the disk outside of what every command has of its own, with a workspace in it.
struct Ground {
    directory: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let program = std::env::current_exe().unwrap();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let bases = [program.parent().map(PathBuf::from), home, Some("/opt".into()), Some("/var/lib".into())];
        let open = |base: &PathBuf| !["/tmp", "/var/tmp", "/dev", "/run"].iter().any(|own| base.starts_with(own));
        let make = |base: PathBuf| tempfile::Builder::new().prefix("aye-ground-").tempdir_in(base).ok();
        let directory = bases.into_iter().flatten().filter(open).find_map(make);
        let ground = Self { directory: directory.expect("a directory outside of /tmp that can be written: set HOME") };
        fs::create_dir(ground.workspace()).unwrap();
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    fn confinement(&self) -> Confinement {
        Confinement {
            strength: Strength::Namespaces,
            roots: vec![self.workspace()],
            view: View::Real,
            writable: Vec::new(),
            read_only: Vec::new(),
            reopened: Vec::new(),
            hidden: Vec::new(),
            caches: Vec::new(),
            network: NetworkAccess::Proxied,
            limits: ResourceLimits::default(),
        }
    }

    /// The same with a layer over the workspace.
    fn layered(&self) -> Confinement {
        let (upper, work) = (self.path("upper"), self.path("work"));
        fs::create_dir(&upper).unwrap();
        fs::create_dir(&work).unwrap();
        let layer = Layered { directory: self.workspace(), upper, work };
        Confinement { view: View::CopyOnWrite(vec![layer]), ..self.confinement() }
    }
}

fn spec(line: &str, confinement: Confinement) -> Spec {
    Spec {
        proxy: None,
        line: line.to_owned(),
        directory: confinement.roots[0].clone(),
        environment: command_environment(std::env::vars_os(), &Environment::Core, &[], &|_| false),
        stdin: None,
        terminal: None,
        confinement: Some(confinement),
        timeout: Duration::from_secs(60),
        max_output_bytes: 100 * 1024,
        helper: Helper::default(),
    }
}

async fn try_run(line: &str, confinement: Confinement) -> Result<Finished, ProcessError> {
    let (live, _received) = mpsc::channel(1);
    run(spec(line, confinement), live, CancellationToken::new()).await
}

/// What it printed, on both.
async fn output(line: &str, confinement: Confinement) -> String {
    let finished = try_run(&format!("exec 2>&1; {line}"), confinement).await.unwrap();
    assert!(matches!(finished.end, End::Exited(_)), "{:?}", finished.end);
    finished.stdout.text(100 * 1024)
}

#[tokio::test]
async fn what_is_written_in_the_workspace_is_real_and_nothing_else_is() {
    let ground = Ground::new();
    fs::write(ground.path("outside"), "").unwrap();
    let line = format!("id -u; echo a > in; echo b > {}; echo c > /tmp/c; cat in /tmp/c", ground.path("outside").display());
    let text = output(&line, ground.confinement()).await;
    assert!(text.contains("Read-only file system") && text.ends_with("a\nc\n"), "{text}");
    assert_eq!(fs::read_to_string(ground.workspace().join("in")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(ground.path("outside")).unwrap(), "");
}

#[tokio::test]
async fn what_is_written_in_a_layer_is_in_the_layer() {
    let ground = Ground::new();
    fs::write(ground.workspace().join("old"), "old\n").unwrap();
    let text = output("echo new >> old; echo a > b; rm -f old; ls", ground.layered()).await;
    assert_eq!(text, "b\n");
    assert_eq!(fs::read_to_string(ground.workspace().join("old")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(ground.path("upper/b")).unwrap(), "a\n");
    assert_eq!(fs::metadata(ground.path("upper/old")).unwrap().rdev(), 0);
    assert!(!Path::new(&ground.workspace()).join("b").exists());
}
