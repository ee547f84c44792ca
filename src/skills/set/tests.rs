use super::*;
use crate::skills::{CandidateContents, Folder};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Returns a temporary directory's path with symlinks resolved.
fn real(directory: &TempDir) -> PathBuf {
    directory.path().canonicalize().unwrap()
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(root: &Path, folder: &str, name: &str, more: &str) {
    put(
        root,
        &format!("{folder}/{name}/SKILL.md"),
        &format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\nDo {folder}."),
    );
}

fn folder(root: &Path, path: &str, origin: Origin) -> Folder {
    let boundary = (origin == Origin::Project).then(|| root.to_owned());
    Folder { path: root.join(path), shown: path.to_owned(), origin, boundary, kept_apart: vec![root.to_owned()] }
}

/// Reads the skills of a workspace and a home directory.
fn read(workspace: &Path, home: &Path) -> SkillSet {
    let mut seen = HashSet::new();
    let of_project = |path: &&str| folder(workspace, path, Origin::Project).contents(&mut seen);
    let project = super::super::PROJECT_FOLDERS.iter().map(of_project).collect();
    let own = ["config/skills", ".agents/skills", ".claude/skills"].map(|path| folder(home, path, Origin::User)).to_vec();
    SkillFolders { project, workspace: workspace.to_owned(), own }.read()
}

#[test]
fn duplicate_names_are_resolved_by_folder_order_and_reported() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    for path in [".claude/skills", ".agents/skills", ".aye/skills"] {
        skill(&workspace, path, "pdf", "");
    }
    skill(&workspace, ".claude/skills", "lint", "");
    skill(&home, ".agents/skills", "lint", "");
    skill(&home, "config/skills", "mine", "");
    let set = read(&workspace, &home);
    let used: Vec<(&str, String)> = set.skills.iter().map(|skill| (skill.name(), skill.file())).collect();
    let expected =
        [("lint", ".claude/skills/lint/SKILL.md"), ("mine", "config/skills/mine/SKILL.md"), ("pdf", ".aye/skills/pdf/SKILL.md")];
    assert_eq!(used, expected.map(|(name, file)| (name, file.to_owned())));
    let hidden: Vec<(&str, &str)> = set.hidden.iter().map(|skill| (skill.file.as_str(), skill.used_file.as_str())).collect();
    assert_eq!(
        hidden,
        [
            (".agents/skills/pdf/SKILL.md", ".aye/skills/pdf/SKILL.md"),
            (".claude/skills/pdf/SKILL.md", ".aye/skills/pdf/SKILL.md"),
            (".agents/skills/lint/SKILL.md", ".claude/skills/lint/SKILL.md"),
        ]
    );
    assert_eq!(set.own_directories(), [home.join("config/skills/mine")]);
}

#[test]
fn links_within_the_workspace_are_followed_once_and_others_are_rejected() {
    let (one, other, third) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home, outside) = (real(&one), real(&other), real(&third));
    skill(&workspace, "shared", "pdf", "");
    skill(&outside, "x", "evil", "");
    skill(&workspace, ".agents/skills", "loop", "");
    put(&outside, "key", "secret");
    fs::create_dir_all(workspace.join(".claude")).unwrap();
    symlink("../.agents/skills", workspace.join(".claude/skills")).unwrap();
    symlink(workspace.join("shared/pdf"), workspace.join(".agents/skills/pdf")).unwrap();
    symlink(outside.join("x/evil"), workspace.join(".agents/skills/evil")).unwrap();
    symlink("..", workspace.join(".agents/skills/loop/up")).unwrap();
    symlink(outside.join("key"), workspace.join(".agents/skills/loop/key")).unwrap();
    fs::create_dir_all(workspace.join(".agents/skills/linked")).unwrap();
    symlink(outside.join("x/evil/SKILL.md"), workspace.join(".agents/skills/linked/SKILL.md")).unwrap();
    let set = read(&workspace, &home);
    assert_eq!(set.skills.iter().map(Skill::name).collect::<Vec<_>>(), ["loop", "pdf"]);
    assert!(set.hidden.is_empty(), "the same directory is not a second skill: {:?}", set.hidden);
    let files: Vec<String> = set.find("loop").unwrap().files().into_iter().map(|file| file.path).collect();
    assert_eq!(files, ["SKILL.md"], "neither a circle nor a key outside is part of the skill");
    let broken: Vec<&str> = set.broken.iter().map(|skill| skill.file.as_str()).collect();
    assert_eq!(broken, [".agents/skills/evil/SKILL.md", ".agents/skills/linked/SKILL.md"]);
    assert!(set.broken[0].faults[0].message.contains("outside the project"));
    let reports = crate::skills::check(&folder(&workspace, ".agents/skills", Origin::Project));
    let of_loop = reports.iter().find(|report| report.file.contains("loop")).unwrap();
    let warnings: Vec<String> = of_loop.warnings.iter().map(|fault| fault.message.clone()).collect();
    assert!(warnings[0].contains("`key` is not part of the skill: a symlink to"), "{warnings:?}");
    assert!(warnings[1].contains("`up` is not part of the skill: a symlink to a directory"), "{warnings:?}");
}

#[test]
fn a_user_skill_must_not_contain_the_home_directory() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    put(&home, "SKILL.md", "---\nname: all\ndescription: x\n---\nx");
    fs::create_dir_all(home.join(".claude/skills")).unwrap();
    symlink(&home, home.join(".claude/skills/all")).unwrap();
    let set = read(&workspace, &home);
    assert!(set.skills.is_empty() && set.broken[0].faults[0].message.contains("a directory that contains"), "{set:?}");
}

#[test]
fn oversized_surplus_and_special_files_are_rejected_with_a_reason() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    put(&workspace, ".aye/skills/big/SKILL.md", &"x".repeat((256 << 10) + 1));
    skill(&workspace, ".aye/skills", "many", "");
    for number in 0..201 {
        put(&workspace, &format!(".aye/skills/many/f{number}"), "");
    }
    fs::create_dir_all(workspace.join(".aye/skills/pipe")).unwrap();
    nix::unistd::mkfifo(&workspace.join(".aye/skills/pipe/SKILL.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir_all(workspace.join(".aye/skills/folder/SKILL.md")).unwrap();
    skill(&workspace, ".aye/skills", "deep/a/b/c/d/e/f/g/h", "");
    put(&workspace, ".aye/skills/deep/SKILL.md", "---\nname: deep\ndescription: x\n---\nx");
    put(&workspace, ".aye/skills/a\u{1b}[31mb/SKILL.md", "---\nname: x\ndescription: x\n---\nx");
    put(&workspace, ".aye/skills/not-a-skill/README.md", "x");
    let set = read(&workspace, &home);
    assert!(set.skills.is_empty(), "{:?}", set.skills);
    let told: Vec<String> =
        set.broken.iter().map(|broken| format!("{}: {}", broken.file.escape_debug(), broken.faults[0].message)).collect();
    for part in [
        "a\\u{1b}[31mb/SKILL.md: the name `a\\u{1b}[31mb` may contain only",
        "big/SKILL.md: `SKILL.md` is too large (256.0 KB); the limit is 256 KB",
        "deep/SKILL.md: directories more than 6 levels deep",
        "folder/SKILL.md: cannot read `SKILL.md`",
        "many/SKILL.md: more than 200 files",
        "pipe/SKILL.md: cannot read `SKILL.md`: not a regular file",
    ] {
        assert!(told.iter().any(|line| line.contains(part)), "{part}: {told:#?}");
    }
    assert!(set.notice().unwrap().contains("and 5 more"), "{:?}", set.notice());
}

#[test]
fn skills_beyond_the_limit_are_counted_and_not_read() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    for number in 0..1000 {
        skill(&workspace, ".claude/skills", &format!("s{number:03}"), "");
        skill(&home, ".claude/skills", &format!("u{number:03}"), "");
    }
    let set = read(&workspace, &home);
    assert_eq!(set.skills.len(), 400);
    assert_eq!(set.limits.len(), 2);
    assert!(set.limits[1].starts_with("800 skills in `.claude/skills` are ignored: the limit is 200"), "{:?}", set.limits);
}

#[test]
fn changed_files_of_project_skills_are_detected_and_named() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    skill(&workspace, ".claude/skills", "pdf", "");
    put(&workspace, ".claude/skills/pdf/scripts/run.sh", "echo a");
    put(&workspace, ".claude/skills/pdf/.git/config", "not part of it");
    let set = read(&workspace, &home);
    let skill = set.find("pdf").unwrap();
    let script = workspace.join(".claude/skills/pdf/scripts/run.sh");
    assert_eq!((skill.change(), set.changed_owner(&script).is_some()), (None, false));
    put(&workspace, ".claude/skills/pdf/scripts/run.sh", "echo b");
    assert_eq!(skill.change().as_deref(), Some("`scripts/run.sh` changed"));
    assert_eq!(set.changed_owner(&script).map(Skill::name), Some("pdf"));
    put(&workspace, ".claude/skills/pdf/scripts/run.sh", "echo a");
    put(&workspace, ".claude/skills/pdf/more.sh", "x");
    assert_eq!(skill.change().as_deref(), Some("`more.sh` is new"));
    assert!(set.changed_owner(&workspace.join(".claude/skills/pdf/more.sh")).is_some());
    fs::remove_file(workspace.join(".claude/skills/pdf/more.sh")).unwrap();
    fs::remove_file(&script).unwrap();
    assert_eq!(skill.change().as_deref(), Some("`scripts/run.sh` was removed"));
    assert!(set.changed_owner(&workspace.join("src/main.rs")).is_none());
}

#[test]
fn skill_commands_describe_their_origin() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (workspace, home) = (real(&one), real(&other));
    skill(&workspace, ".claude/skills", "pdf", "argument-hint: <file>\n");
    skill(&workspace, ".claude/skills", "inner", "user-invocable: false\n");
    let set = read(&workspace, &home);
    let command = set.find("pdf").unwrap().command().unwrap();
    assert_eq!((command.description.as_str(), command.argument_hint.as_deref()), ("project skill: Does pdf.", Some("<file>")));
    let prompt = command.expand("a.pdf");
    assert!(prompt.starts_with("[Skill pdf, from .claude/skills/pdf/SKILL.md]\nIts files are in /"), "{prompt}");
    assert!(prompt.ends_with("Do .claude/skills.\n\na.pdf"), "{prompt}");
    let named: Vec<(&str, &str)> = Skill::names_in_text(&prompt).collect();
    assert_eq!(named, [("pdf", "[Skill pdf, from .claude/skills/pdf/SKILL.md]")]);
    assert!(set.find("inner").unwrap().command().is_none());
}

#[test]
fn without_skill_folders_there_are_no_skills() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let set = read(&real(&one), &real(&other));
    assert_eq!(set, SkillSet::default());
    let contents = folder(&real(&one), ".aye/skills", Origin::Project).contents(&mut HashSet::new());
    assert!(contents.candidates.is_empty() && contents.problem.is_none());
    assert!(!matches!(contents.candidates.first().map(|one| &one.contents), Some(CandidateContents::Closed { .. })));
}
