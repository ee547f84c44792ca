use super::*;
use serde_json::Value;
use std::collections::BTreeMap;

fn cases(platform: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(shared!("corpora/paths.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|case| case["platform"] == platform).collect()
}

/// Returns the links and junctions of a test case, keyed by their lower-case paths.
fn links(case: &Value) -> BTreeMap<String, String> {
    let steps = case["setup"].as_array().into_iter().flatten();
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    steps
        .filter(|step| step["op"] == "junction" || step["op"] == "symlink")
        .map(|step| (text(step, "path").to_lowercase(), text(step, "target")))
        .collect()
}

fn purpose(case: &Value) -> Use {
    match case["tool"].as_str().unwrap() {
        "read_file" | "list_dir" | "glob" | "grep" | "shell_cwd" => Use::Reads,
        _ => Use::Changes,
    }
}

fn told(judged: PathJudgement) -> &'static str {
    match judged {
        PathJudgement::Inside => "inside",
        PathJudgement::Outside => "outside",
        PathJudgement::Blocked(_) => "blocked",
    }
}

#[track_caller]
fn check(platform: &str, judge: impl Fn(&str, &Value) -> PathJudgement) {
    for case in cases(platform) {
        let args = ["arg", "arg2"].iter().filter_map(|key| case[key].as_str());
        // The stricter of two results applies.
        let answers: Vec<_> = args.map(|arg| told(judge(arg, &case))).collect();
        let answer = ["blocked", "outside", "inside"].into_iter().find(|answer| answers.contains(answer)).unwrap();
        let also = case["also_ok"].as_array().into_iter().flatten();
        let expected: Vec<_> = std::iter::once(&case["expected"]).chain(also).collect();
        assert!(expected.iter().any(|expected| **expected == answer), "{} ({}): {answer}", case["id"], case["why"]);
    }
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn shared_windows_cases_have_the_expected_results() {
    check("windows", |arg, case| {
        let links = links(case);
        let link = |path: &str| links.get(&path.to_lowercase()).cloned();
        windows::judge(arg, purpose(case), &windows::WindowsFacts { root: case["root"].as_str().unwrap(), link: &link })
    });
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn shared_macos_cases_have_the_expected_results() {
    check("macos", |arg, case| {
        let links = links(case);
        let link = |path: &str| links.get(&path.to_lowercase()).cloned();
        let machine =
            macos::MacFacts { root: case["root"].as_str().unwrap(), home: "/home/user", case: macos::Case::Ignored, link: &link };
        macos::judge(arg, purpose(case), &machine)
    });
}

#[test]
fn windows_paths_are_resolved_as_on_windows() {
    let link = |path: &str| match path.to_lowercase().as_str() {
        r"c:\ws\out" => Some(r"\??\C:\outside".to_owned()),
        r"c:\ws\in" => Some(r"C:\ws\src".to_owned()),
        r"c:\ws\up" => Some(r"..\ws\src".to_owned()),
        r"c:\ws\net" => Some(r"\\server\share".to_owned()),
        r"c:\ws\loop" => Some("loop".to_owned()),
        r"c:\ws\hooks" => Some(r"C:\ws\.git\hooks".to_owned()),
        _ => None,
    };
    let machine = windows::WindowsFacts { root: r"C:\ws", link: &link };
    let of = |arg: &str| told(windows::judge(arg, Use::Changes, &machine));
    let inside = [
        r"src\a.rs",
        "src/a.rs",
        r".\src\..\b",
        r"c:/WS/x",
        r"\ws\x",
        r"\\?\C:\ws\x",
        r"\\?\c:\WS\x",
        r"%APPDATA%\x",
        r"in\x",
        r"up\x",
        "console.txt",
        "com10.txt",
        "lpt.txt",
        "null",
        ".gitignore",
        ".gitattributes",
        "a b",
        "file~1.txt",
        r"..\ws\x",
        "..x",
        "...x",
        "git",
        "café.txt",
        ".github",
        "aux-files",
    ];
    let outside = [
        r"..\x",
        r"C:\",
        r"D:\ws\x",
        r"\x",
        r"\\server\share\x",
        "//server/share",
        r"\\?\UNC\server\share",
        r"\\?\unc\s\s",
        r"out\x",
        r"net\x",
        r"C:\wsx",
        r"C:\ws.bak",
        r"~\x",
        "~",
        r"\\?\D:\x",
        r"out\..\..\outside",
    ];
    let blocked = [
        "",
        r"C:x",
        "C:",
        r"ws:\x",
        r"\\.\C:\ws\x",
        r"\??\C:\ws\x",
        "/??/C:/ws",
        r"\\?\GLOBALROOT\Device",
        r"\\?\Volume{1}\x",
        "//./pipe/x",
        "f:s",
        "f::$DATA",
        r"dir:$I30:$INDEX_ALLOCATION\x",
        "CON",
        "con.txt",
        "NUL .txt",
        "nul",
        r"src\AUX",
        "COM1.log",
        "com¹",
        "LPT9",
        "CONIN$",
        "conout$",
        "x.",
        "x ",
        r"a.\b",
        "...",
        "a?b",
        "a*",
        "a<b",
        "a|b",
        "a\0b",
        "a\tb",
        r".git\config",
        r".GIT\x",
        r"sub\.git\hooks\x",
        "GIT~1",
        r"git~2\x",
        r"VSCODE~1\x",
        "MCP~1.JSO",
        r".g\u{200c}it\x".replace(r"\u{200c}", "\u{200c}").leak(),
        r"hooks\pre-commit",
        r"loop\x",
        r"\\?\C:\ws\..\x",
        r"\\?\C:\ws\x.",
        ".aye",
        ".envrc",
        "ENVRC~1",
    ];
    for (expected, args) in [("inside", &inside[..]), ("outside", &outside[..]), ("blocked", &blocked[..])] {
        for arg in args {
            assert_eq!(of(arg), expected, "{arg}");
        }
    }
    assert_eq!(windows::judge(r".git\config", Use::Reads, &machine), PathJudgement::Inside);
}

#[test]
fn macos_paths_are_resolved_as_on_macos() {
    let link = |path: &str| match path {
        "/private/var/ws/out" => Some("/outside".to_owned()),
        "/private/var/ws/loop" => Some("loop".to_owned()),
        "/private/var/ws/in" => Some("src".to_owned()),
        _ => None,
    };
    let of = |arg: &str, case| {
        told(macos::judge(arg, Use::Changes, &macos::MacFacts { root: "/var/ws", home: "/Users/me", case, link: &link }))
    };
    let both = [
        ("src/a", "inside"),
        ("/var/ws/a", "inside"),
        ("/private/var/ws/a", "inside"),
        ("/System/Volumes/Data/private/var/ws/a", "inside"),
        ("/system/volumes/data/var/ws/a", "inside"),
        ("in/../a", "inside"),
        (".gitignore", "inside"),
        ("cafe\u{301}", "inside"),
        ("../x", "outside"),
        ("/var/wsx", "outside"),
        ("out/x", "outside"),
        ("in/../../x", "outside"),
        ("~/x", "outside"),
        ("/w\u{200c}s/x", "outside"),
        ("/private/var/w\u{200c}s/x", "outside"),
        ("/System/Volumes/Data/Users/me", "outside"),
        ("", "blocked"),
        ("a\0b", "blocked"),
        ("~root/x", "blocked"),
        ("loop", "blocked"),
        ("/.vol/1/2", "blocked"),
        ("f/..namedfork/rsrc", "blocked"),
        ("/.nofollow/var/ws", "blocked"),
        (".git/config", "blocked"),
        (".GIT", "blocked"),
        (".g\u{200c}it/x", "blocked"),
        (".vſcode/x", "blocked"),
        ("sub/.Claude/x", "blocked"),
        (".\u{2060}aye", "blocked"),
        ("．git/config", "blocked"),
    ];
    for (arg, expected) in both {
        assert_eq!(of(arg, macos::Case::Ignored), expected, "{arg}");
        if expected != "inside" {
            assert_eq!(of(arg, macos::Case::Kept), expected, "{arg}");
        }
    }
    assert_eq!((of("/VAR/WS/a", macos::Case::Ignored), of("/VAR/WS/a", macos::Case::Kept)), ("inside", "outside"));
    // A composed and a decomposed character are the same name.
    let accent = |root, arg| {
        macos::judge(arg, Use::Reads, &macos::MacFacts { root, home: "/h", case: macos::Case::Kept, link: &|_| None })
    };
    assert_eq!(accent("/re\u{301}s", "/r\u{e9}s/a"), PathJudgement::Inside);
}

fn context(roots: &[&str]) -> Context {
    Context {
        roots: roots.iter().map(PathBuf::from).collect(),
        home: PathBuf::from("/home/me"),
        mode: Mode::Ask,
        sandbox: Sandbox::Absent,
        own: Vec::new(),
        skills: Vec::new(),
    }
}

#[test]
fn protected_names_are_matched_in_every_spelling_at_any_depth() {
    let context = context(&["/home/me/ws", "/home/me/ws/sub/root"]);
    let name = |path: &str| protected(Path::new(path), &context).map(|found| (found.name, found.may_be_opened));
    let closed = |name: &str| Some((name.to_owned(), false));
    let opened = |name: &str| Some((name.to_owned(), true));
    let cases = [
        ("/home/me/ws/.git/config", closed(".git")),
        ("/home/me/ws/a/b/.GIT", closed(".git")),
        ("/home/me/ws/.g\u{200d}it/x", closed(".git")),
        ("/home/me/ws/git~1/x", closed(".git")),
        ("/home/me/ws/.git. /x", closed(".git")),
        ("/home/me/ws/.git::$INDEX_ALLOCATION/x", closed(".git")),
        ("/home/me/ws/．ｇｉｔ/x", closed(".git")),
        ("/home/me/ws/.AYE/policy.toml", closed(".aye")),
        ("/home/me/ws/.vſcode/tasks.json", opened(".vscode")),
        ("/home/me/ws/sub/root/.envrc", opened(".envrc")),
        ("/elsewhere/.git/x", closed(".git")),
        ("/home/me/.bashrc", opened(".bashrc")),
        ("/home/me/.config/fish/config.fish", opened(".config/fish")),
        ("/home/me/.ssh/authorized_keys", closed(".ssh")),
        ("/root/.profile", opened(".profile")),
        ("/home/other/.aws/credentials", closed(".aws")),
        ("/home/me/ws/.gitignore", None),
        ("/home/me/ws/.github/workflows/ci.yml", None),
        ("/home/me/ws/git/x", None),
        ("/home/me/ws/.bashrc", None),
        ("/home/me/ws/.ssh/config", None),
        ("/home/me/ws/.npmrc", None),
        ("/srv/data/.npmrc", None),
        ("/home/me/notes.txt", None),
        ("/home/me/ws/aye~1", None),
    ];
    for (path, expected) in cases {
        assert_eq!(name(path), expected, "{path}");
    }
}

#[test]
fn a_workspace_inside_a_git_directory_is_not_writable() {
    let context = context(&["/home/me/project/.git/hooks"]);
    assert!(protected(Path::new("/home/me/project/.git/hooks/pre-commit"), &context).is_some_and(|found| !found.may_be_opened));
    let context = self::context(&["/home/me/.claude/worktrees/x"]);
    assert_eq!(protected(Path::new("/home/me/.claude/worktrees/x/src/main.rs"), &context), None);
}

#[test]
fn credentials_are_reported_with_the_directory_that_a_rule_must_name() {
    let context = context(&["/home/me/ws"]);
    let found = credentials(Path::new("/home/me/.ssh/keys/id"), &context).unwrap();
    assert_eq!((found.name, found.place.as_path()), (".ssh", Path::new("/home/me/.ssh")));
    let places = |text: &str| PathPatterns::new(&[Pattern { text: text.to_owned(), line: 1 }], &context, false);
    let named = |text: &str, path: &str| places(text).names(&found.place, Path::new(path));
    assert!(named("~/.ssh", "/home/me/.ssh/config") && named("~/.ssh/config", "/home/me/.ssh/config"));
    assert!(named("~/.ssh/*.pub", "/home/me/.ssh/a.pub"));
    assert!(
        !named("~", "/home/me/.ssh/config") && !named("/", "/home/me/.ssh/config") && !named("~/.s*", "/home/me/.ssh/config")
    );
    assert!(!named("~/.ssh/config", "/home/me/.ssh/id_rsa") && !named("**/.ssh/**", "/home/me/.ssh/id_rsa"));
}

#[test]
fn process_and_kernel_files_are_detected() {
    for path in ["/proc/1/environ", "/proc/self/mem", "/proc/thread-self/root/x", "/dev/fd/3", "/dev/fd"] {
        assert!(is_process_path(Path::new(path), false), "{path}");
    }
    for path in ["/proc/sys/kernel/core_pattern", "/sys/power/state", "/dev/sda"] {
        assert!(is_process_path(Path::new(path), true) && !is_process_path(Path::new(path), false), "{path}");
    }
    for path in ["/proc/cpuinfo", "/dev/shm/x", "/process/1/x", "/home/proc/1"] {
        assert!(!is_process_path(Path::new(path), false), "{path}");
    }
    assert!(!is_process_path(Path::new("/dev/shm/x"), true));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn path_rules_do_not_panic_on_any_text(text in ".*", root in "[A-Z]:\\\\[a-z]{1,4}") {
        for purpose in [Use::Reads, Use::Changes] {
            let _ = windows::judge(&text, purpose, &windows::WindowsFacts { root: &root, link: &|_| Some(text.clone()) });
            let machine = macos::MacFacts { root: "/ws", home: "/h", case: macos::Case::Ignored, link: &|_| Some(text.clone()) };
            let _ = macos::judge(&text, purpose, &machine);
        }
        let _ = protected(Path::new(&text), &context(&["/ws"]));
    }
}

#[test]
fn a_list_without_a_compiled_glob_set_still_blocks() {
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/u"),
        mode: Mode::Ask,
        sandbox: Sandbox::Absent,
        own: Vec::new(),
        skills: Vec::new(),
    };
    let patterns: Vec<_> =
        ["*.a", "**/.env"].iter().zip(7..).map(|(text, line)| Pattern { text: (*text).to_owned(), line }).collect();
    let mut places = PathPatterns::new(&patterns, &context, true);
    for _ in 0..2 {
        assert_eq!(places.matching_line(Path::new("/w/d/.env")), Some(8));
        assert_eq!(places.matching_line(Path::new("/w/d/env")), None);
        places.globs = None;
    }
}

#[test]
fn special_characters_in_workspace_names_match_literally() {
    for name in ["a\\b", "a\\*", "x\\[a]", "[a]", "{a,b}", "a?", "\\\\", "$x"] {
        let context = Context {
            roots: vec![PathBuf::from("/").join(name)],
            home: PathBuf::from("/home/u"),
            mode: Mode::Ask,
            sandbox: Sandbox::Absent,
            own: Vec::new(),
            skills: Vec::new(),
        };
        let pattern = Pattern { text: "${workspace}/*.key".to_owned(), line: 1 };
        let places = PathPatterns::new(&[pattern], &context, true);
        assert_eq!(places.matching_line(&context.roots[0].join("a.key")), Some(1), "{name}");
        assert_eq!(places.matching_line(Path::new("/ab/a.key")), None, "{name}");
    }
}
