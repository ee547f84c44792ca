//! Table of files that run code: when a folder is opened, when a program starts in it, or during a build that the user
//! starts.

use super::names::fold_name;
use super::protected::{PROTECTED, START_UP};
use crate::protocol::RunsWhen;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// Files of one kind, and the programs that read them.
struct Kind {
    /// Programs that read these files, as a plural or a name that fits "{readers} read it".
    readers: &'static str,
    /// Whether existing files are read-only for sandboxed commands. False for files that package managers or git write
    /// regularly.
    read_only_in_sandbox: bool,
    /// File names in lower case, which match at any depth. A directory includes everything below it. `a/b` matches `b`
    /// in `a`, `=a` matches only a file, and `*` stands for any characters.
    names: &'static str,
}

const fn kind(readers: &'static str, names: &'static str) -> Kind {
    Kind { readers, read_only_in_sandbox: false, names }
}

const fn kept_kind(readers: &'static str, names: &'static str) -> Kind {
    Kind { readers, read_only_in_sandbox: true, names }
}

/// Files that run, or that contain commands that run, as soon as the folder is opened or a program starts in it.
const OPENED: &[Kind] = &[
    kind(
        "version control tools",
        ".gitmodules .gitattributes .hg .hgsub .svn .bzr .jj .sl .pijul .fossil-settings .husky .huskyrc* husky.config.* \
         .githooks .git-hooks .git_hooks githooks git-hooks .hooks lefthook.* .lefthook.* lefthook-local.* \
         .lefthook-local.* .lefthook .lefthook-local .config/lefthook* .pre-commit-config.yaml .pre-commit-config.yml \
         .pre-commit-hooks.yaml prek.toml .overcommit.yml .git-hooks.yml .simple-git-hooks.* simple-git-hooks.* \
         .lintstagedrc* lint-staged.config.* .commitlintrc* commitlint.config.* captainhook.json grumphp.yml hk.pkl \
         .gitlint _darcs",
    ),
    kept_kind(
        "coding agents",
        "mcp.json .mcp mcp_config.json mcp_settings.json cline_mcp_settings.json claude_desktop_config.json opencode.json \
         opencode.jsonc .opencode .opencode.json crush.json .crush.json .crush .roo .roomodes .kilocode .kilocodemodes \
         .cline .amazonq .kiro .continue .continuerc.json .windsurf .codeium .augment .trae .qwen .qoder .goose .aider* \
         .amp .factory .junie .openhands .agents .agent .copilot .github/agents .github/hooks .github/prompts \
         .github/chatmodes .github/extensions .claude-plugin .codebuddy .tabnine .cody .sourcegraph .pearai .gptme \
         gptme.toml .plandex .warp .grok .letta .hermes .openclaw .lingma .zencoder .firebender .devin .claude.json",
    ),
    kind(
        "coding agents",
        "agents.md agents.override.md agents.local.md agent.md claude.md claude.local.md gemini.md qwen.md crush.md \
         warp.md skill.md .cursorrules .windsurfrules .clinerules .roorules* .kilocoderules .goosehints .rules .replit.md \
         replit.md .github/copilot-instructions.md .github/instructions copilot-instructions.md",
    ),
    kept_kind(
        "editors",
        "*.code-workspace *.sublime-project *.sublime-workspace *.sublime-settings *.sublime-build .zed .fleet .nova \
         .helix .nvim .nvim.lua .nvimrc .exrc _exrc .vim .vimrc _vimrc .gvimrc _gvimrc .lvimrc .local.vimrc .vimrc.local \
         .nvimrc.local _vimrc_local.vim .vimrc_local.vim .neoconf.json .lazy.lua .dir-locals.el .dir-locals-2.el .emacs \
         .emacs.d .emacs.desktop .spacemacs .doom.d .kakrc .kak .theia *.ipr *.iws",
    ),
    kind(
        "editors and language servers",
        ".vs .project .externaltoolbuilders .luarc.json .luarc.jsonc .tern-project .clj-kondo .lsp .bsp .metals \
         .ycm_extra_conf.py project.godot .luacheckrc nbproject/private .ctags .ctags.d .run .classpath .factorypath .settings \
         omnisharp.json rust-analyzer.toml .rust-analyzer.toml hie.yaml .hie-bios .sourcekit-lsp zls.json \
         erlang_ls.config .ruby-lsp .formatter.exs .kateproject .lite_project.lua .nrepl.edn",
    ),
    kept_kind(
        "development containers",
        ".devcontainer .devcontainer.json devcontainer.json .gitpod.yml .gitpod.yaml .gitpod .gitpod.dockerfile .ona .idx \
         .replit replit.nix .codesandbox .stackblitzrc .stackblitz devfile.yaml .devfile.yaml .codespaces .coder .daytona \
         .devpod",
    ),
    kind(
        "shells and environment loaders",
        ".envrc.* .direnvrc .direnv .autoenv .autoenv.zsh .autoenv_leave.zsh .env.enter .env.leave .ondir .shadowenv.d \
         .smartcd mise.toml .mise.toml mise.*.toml .mise.*.toml .mise .config/mise* .rtx.toml .rtx.*.toml .tool-versions \
         .asdfrc .prototools .proto .rvmrc .rbenv-vars .pyenv-vars .venvrc .hermit bin/activate-hermit .flox autorun.inf \
         desktop.ini *.library-ms *.searchconnector-ms *.scf mise/config.toml mise/config.*.toml",
    ),
    kind(
        "shells and environment loaders",
        ".env .env.local .env.*.local .env.development .env.dev .env.production .env.prod .env.staging .env.test \
         .flaskenv .venv/bin venv/bin env/bin .venv/scripts venv/scripts env/scripts flake.nix shell.nix devenv.nix devenv.yaml \
         devenv.local.nix devbox.json devshell.toml guix.scm .guix-channels manifest.scm",
    ),
    kind("Cargo and rustup", ".cargo rust-toolchain rust-toolchain.toml .rusty-hook.toml"),
    kind(
        "npm, yarn, pnpm, Bun and Node.js",
        ".npmrc npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .yarn/plugins .yarn/releases .yarn/sdks .pnp.cjs .pnp.js \
         .pnp.loader.mjs .pnp.data.json .pnpmfile.cjs .pnpmfile.mjs pnpmfile.* .pnpmrc bunfig.toml .bunfig.toml .noderc \
         pnpm-workspace.yaml node_modules/.bin .nvm .volta .bowerrc .meteor .lernarc .corepack.env",
    ),
    kind(
        "Gradle, Maven and sbt",
        "gradlew gradlew.bat gradle/wrapper gradle.properties gradle/init.d init.gradle init.gradle.kts .gradle mvnw \
         mvnw.cmd .mvn .mavenrc .jvmopts .sbtopts .sbtrc .sbt .jvmrc .mill-jvm-opts .mill-opts millw .m2 .ammonite =mill",
    ),
    kind(
        "Bazel and other build tools",
        ".bazelrc *.bazelrc .bazeliskrc .bazelversion tools/bazel .buckconfig .buckconfig.local .buckconfig.d \
         cmakeuserpresets.json",
    ),
    kind(
        "Python, pip and Jupyter",
        "sitecustomize.py usercustomize.py *.pth .pythonrc .pythonrc.py .pythonstartup .pdbrc .pdbrc.py .ipython \
         ipython_config.py ipython_kernel_config.py .jupyter jupyter_*config.* .python-version pyvenv.cfg .condarc \
         .mambarc pip.conf pip.ini .pip .pypirc poetry.toml uv.toml .pdm-python .pdm.toml .matplotlibrc matplotlibrc \
         .pyrc .ptpython .bpython .xonshrc",
    ),
    kind(
        "Ruby",
        ".irbrc _irbrc .pryrc .bundle .ruby-version .ruby-gemset .rdbgrc .rdbgrc.rb .byebugrc .railsrc .gemrc \
         .solargraph.yml",
    ),
    kind(
        "test runners, formatters and linters",
        ".rspec .busted .perltidyrc .markdownlint.cjs .markdownlint-cli2.cjs .markdownlint-cli2.mjs",
    ),
    kind("latexmk", "latexmkrc .latexmkrc"),
    kind(".NET", "global.json"),
    kind("PHP and web servers", "php.ini .php.ini .user.ini .htaccess web.config .phpactor.json .phpactor.yml"),
    kind(
        "R, Julia, Haskell, OCaml, Lisp and others",
        ".rprofile rprofile.site .renviron renviron.site .rdata *.rproj startup.jl .juliarc.jl .julia .ghci .ghcirc \
         .ocamlinit .octaverc startup.m .utop .utoprc .lein .leinrc profiles.clj .clojure .joker .sbclrc .clisprc* \
         .ccl-init.lisp .eclrc .guile .erlang .iex.exs .proverc .swiftpm .tclshrc .wishrc .perldb .csirc .gambini .swiplrc \
         .scilab maxima-init.mac maxima-init.lisp .rootrc rootlogon.c .autotest",
    ),
    kept_kind(
        "debuggers and terminal programs",
        ".gdbinit gdbinit .gdbearlyinit *-gdb.py *-gdb.gdb *-gdb.scm .lldbinit .lldbinit-* .radare2rc .rizinrc .ripgreprc \
         .fdrc .ackrc .tmux .tmuxinator.yml .tmuxinator.yaml .tmuxp.yaml .tmuxp.json .byobu .lesskey .lessfilter .psqlrc \
         .sqliterc .mongorc.js .mongoshrc.js .myclirc .sopsrc .watchmanconfig .nanorc openocd.cfg .spiceinit .magicrc .cdsinit",
    ),
    kind(
        "infrastructure tools",
        ".ssh .aws .kube .docker/config.json .netrc .terraformrc .terraform terraform.rc .terraform.d .terragrunt-cache .ansible ansible.cfg .ansible.cfg .vagrant .vagrant.d \
         .pulumi",
    ),
];

/// Files that run during a build, test or deployment that the user starts.
const BUILT: &[Kind] = &[
    kind(
        "make and other build tools",
        "makefile makefile.* gnumakefile bsdmakefile *.mk *.mak kbuild justfile .justfile *.just taskfile.* rakefile \
         rakefile.rb *.rake sconstruct sconscript meson.build meson.options cmakelists.txt *.cmake cmakepresets.json \
         configure configure.ac configure.in *.m4 *.am autogen.sh bootstrap.sh build.sh *.ninja wscript snakefile lakefile.lean lakefile.toml \
         magefile.go magefiles build.zig build.zig.zon xmake.lua premake5.lua tup.config tupfile workspace.bazel \
         module.bazel build.bazel *.bzl pants.toml please.toml conanfile.py conanfile.txt vcpkg.json *.pro =buck",
    ),
    kind("Cargo", "build.rs cargo.toml"),
    kind(
        "JavaScript build tools",
        "package.json .mocharc.* lerna.json nx.json turbo.json rush.json deno.json deno.jsonc *.config.js \
         *.config.cjs *.config.mjs *.config.ts *.config.mts *.config.cts gulpfile.* gruntfile.* jakefile* webpack.*.js \
         .babelrc* .swcrc .storybook karma.conf.* wdio.conf.* angular.json project.json metro.config.* ember-cli-build.js \
         bower.json binding.gyp *.gypi .eslintrc* .prettierrc* .stylelintrc*",
    ),
    kind(
        "Python build and test tools",
        "setup.py setup.cfg pyproject.toml tox.ini noxfile.py conftest.py pytest.ini manage.py tasks.py fabfile.py \
         dodo.py pipfile requirements*.txt environment.yml environment.yaml hatch.toml hatch_build.py mypy.ini .mypy.ini \
         .flake8 .coveragerc meson_options.txt pavement.py .pylintrc pylintrc",
    ),
    kind(
        "Java, Kotlin, Scala and Clojure build tools",
        "build.gradle build.gradle.kts settings.gradle settings.gradle.kts *.gradle *.gradle.kts buildsrc \
         libs.versions.toml pom.xml build.xml ivy.xml build.sbt *.sbt project/build.properties project/plugins.sbt \
         build.sc build.mill project.clj deps.edn shadow-cljs.edn bb.edn build.boot local.properties nbproject",
    ),
    kind(
        "other build tools",
        "gemfile *.gemspec guardfile fastfile fastlane podfile config.ru .rubocop.yml composer.json phpunit.xml \
         phpunit.xml.dist .php-cs-fixer* go.mod go.work *.csproj *.fsproj *.vbproj *.vcxproj *.sln *.slnx *.props \
         *.targets nuget.config dotnet-tools.json mix.exs rebar.config shard.yml dub.json dub.sdl package.swift *.xcodeproj \
         *.xcworkspace .xcode.env* *.cabal cabal.project* stack.yaml package.yaml setup.hs dune dune-project *.opam \
         pubspec.yaml build.yaml makefile.pl build.pl cpanfile default.nix *.nimble *.rockspec elm.json \
         gleam.toml spago.* foundry.toml hardhat.config.* anchor.toml cog.toml .releaserc* release.config.* .goreleaser.*",
    ),
    kind(
        "continuous integration and deployment",
        ".github/workflows .github/actions .github/dependabot.yml action.yml action.yaml .gitlab-ci.yml .gitlab-ci.yaml \
         .gitlab jenkinsfile* .circleci .travis.yml azure-pipelines*.yml .azure-pipelines bitbucket-pipelines.yml \
         .drone.yml .drone.star .woodpecker* appveyor.yml .appveyor.yml .buildkite .teamcity cloudbuild.y*ml .cirrus.yml \
         .cirrus.star .semaphore codemagic.yaml .forgejo .gitea .builds .build.yml buildspec.y*ml netlify.toml \
         vercel.json fly.toml render.yaml app.yaml app.json procfile* serverless.y*ml wrangler.toml wrangler.json* \
         renovate.json* .renovaterc*",
    ),
    kind(
        "containers and virtual machines",
        "dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml docker-bake.* vagrantfile tiltfile \
         earthfile skaffold.y*ml *.pkr.hcl chart.yaml kustomization.y*ml helmfile.y*ml *.tf *.tf.json *.tfvars \
         terragrunt.hcl pulumi.*yaml .tflint.hcl dagger.json playbook*.y*ml",
    ),
];

/// Entries in `OPENED` that builds, package managers and project setup regularly create.
const MADE_BY_BUILDS: &str = ".venv/bin venv/bin env/bin .venv/scripts venv/scripts env/scripts pyvenv.cfg *.pth .env .env.local .env.*.local \
     .env.development .env.dev .env.production .env.prod .env.staging .env.test .flaskenv .python-version .pdm-python \
     node_modules/.bin .pnp.cjs .pnp.js .pnp.loader.mjs .pnp.data.json .yarn/plugins .yarn/releases .yarn/sdks .meteor \
     .gradle .m2 .bundle .ruby-version .terraform .terragrunt-cache .vagrant .direnv .bsp .metals .clj-kondo .lsp .project \
     .classpath .factorypath .settings .luarc.json nbproject/private .vs .rdata .julia .ipython .jupyter .tool-versions rust-toolchain rust-toolchain.toml \
     flake.nix shell.nix .swiftpm .solargraph.yml";

/// Files that programs read at startup from a home directory. They are also recognized in a directory of dotfiles.
const START_IN_FOLDER: Kind = kind("programs that start in this folder", "");

/// Programs that run code from a file, and when they do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeReader {
    pub when: RunsWhen,
    /// Names of the programs, such as `npm, yarn, pnpm, Bun and Node.js`.
    pub readers: &'static str,
    /// Number of path components that follow the table entry.
    below: usize,
}

impl CodeReader {
    /// Explains why a file is marked, as a sentence that begins with the file's name.
    pub fn reason(&self, name: &str) -> String {
        let when = match self.when {
            RunsWhen::Opened => "as soon as the folder is opened or a program starts in it",
            RunsWhen::Built => "in a build, test or deployment",
        };
        format!("`{name}` can run code {when} (read by {})", self.readers)
    }

    /// Returns a short note that is displayed next to the file name.
    pub fn note(&self) -> String {
        match self.when {
            RunsWhen::Opened => format!("runs code when the folder is opened ({})", self.readers),
            RunsWhen::Built => format!("runs code in builds ({})", self.readers),
        }
    }

    /// Returns the beginning of `path`, up to the end of the table entry.
    pub fn place<'a>(&self, path: &'a Path) -> &'a Path {
        path.ancestors().nth(self.below).unwrap_or(path)
    }
}

/// Returns the programs that run code from a file, based only on the names in its path below a workspace root. Returns
/// `None` if no table entry matches.
pub fn runs_code(path: &Path, roots: &[PathBuf]) -> Option<CodeReader> {
    let above = root_name_count(path, roots);
    let names = fold_names(path);
    match_from(above, &names, true).map(|(entry, end)| reader_for(entry, names.len() - end))
}

/// Returns the number of path components in the innermost root that contains a path, or 0 if no root contains it.
fn root_name_count(path: &Path, roots: &[PathBuf]) -> usize {
    let root = roots.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.as_os_str().len());
    root.map_or(0, |root| fold_names(root).len())
}

/// Returns the entry that matches these names, and the number of names up to the end of the match. `whole` specifies
/// whether the names form a complete path rather than a parent directory.
fn match_from(above: usize, names: &[String], whole: bool) -> Option<(&'static Entry, usize)> {
    let found = (above + 1..=names.len()).flat_map(|end| {
        let at = TABLE.entries_at(&names[..end], whole && end == names.len());
        at.map(move |entry| (entry, end))
    });
    found.min_by_key(|(entry, _)| entry.when)
}

fn reader_for(entry: &Entry, below: usize) -> CodeReader {
    CodeReader { when: entry.when, readers: entry.kind.readers, below }
}

/// Table of files that run code, with a cache of the last directory for checking many paths.
#[derive(Debug)]
pub struct CodeReaders {
    roots: Vec<PathBuf>,
    last: Option<KnownDirectory>,
}

#[derive(Debug)]
struct KnownDirectory {
    path: PathBuf,
    names: Vec<String>,
    /// Programs that run code from every file in the directory, with the number of names up to the end of the matching
    /// entry.
    reader: Option<(CodeReader, usize)>,
}

impl CodeReaders {
    /// Creates a table that considers only names below these roots.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, last: None }
    }

    /// Returns the same result as [`runs_code`].
    pub fn find(&mut self, path: &Path) -> Option<CodeReader> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return runs_code(path, &self.roots) };
        if self.roots.iter().any(|root| root == path) {
            return runs_code(path, &self.roots);
        }
        let known = match self.last.take() {
            Some(known) if known.path == parent => self.last.insert(known),
            _ => {
                let known = self.scan_directory(parent);
                self.last.insert(known)
            }
        };
        known.names.push(fold_name(&name.to_string_lossy()));
        let own = TABLE.entries_at(&known.names, true).min_by_key(|entry| entry.when).map(|entry| reader_for(entry, 0));
        known.names.pop();
        let above = known.reader.map(|(reader, end)| CodeReader { below: known.names.len() + 1 - end, ..reader });
        // Of equal entries, the outermost one applies.
        above.into_iter().chain(own).min_by_key(|reader| reader.when)
    }

    fn scan_directory(&self, directory: &Path) -> KnownDirectory {
        let names = fold_names(directory);
        let above = root_name_count(directory, &self.roots);
        let reader = match_from(above, &names, false).map(|(entry, end)| (reader_for(entry, 0), end));
        KnownDirectory { path: directory.to_owned(), names, reader }
    }
}

/// If the path itself is an entry of `OPENED`, returns whether it is read-only for sandboxed commands. Otherwise
/// returns `None`.
pub(crate) fn opened_entry(path: &Path) -> Option<bool> {
    let names = last_names(path);
    OPENED_ONLY.entries_at(&names, true).map(|entry| entry.kind.read_only_in_sandbox).max()
}

/// Returns whether a path is itself an entry of `OPENED` that builds do not create. A command that runs without
/// approval must not leave such an entry behind.
pub fn is_kept_only_with_approval(path: &Path) -> bool {
    let names = last_names(path);
    OPENED_ONLY.entries_at(&names, true).any(|entry| !MADE.contains(&entry.text))
}

/// Returns the last components of a path, folded. Because every path in a workspace is checked, only as many components
/// are folded as the longest entry has.
fn last_names(path: &Path) -> Vec<String> {
    const MAX_LEN: usize = 3;
    let mut last: Vec<_> = path.components().rev().take(MAX_LEN).collect();
    last.reverse();
    fold_names(&last.into_iter().collect::<PathBuf>())
}

static MADE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| MADE_BY_BUILDS.split_ascii_whitespace().collect());
static OPENED_ONLY: LazyLock<RunsCodeTable> = LazyLock::new(|| RunsCodeTable::select(|when| when == RunsWhen::Opened));
static TABLE: LazyLock<RunsCodeTable> = LazyLock::new(|| RunsCodeTable::select(|_| true));

/// One name of a file kind, split into its components.
struct Entry {
    when: RunsWhen,
    kind: &'static Kind,
    /// Entry as written in the table.
    text: &'static str,
    /// Components of the entry, from last to first.
    names: Vec<&'static str>,
    is_file: bool,
}

impl Entry {
    fn new(when: RunsWhen, kind: &'static Kind, text: &'static str) -> Self {
        let (is_file, names) = text.strip_prefix('=').map_or((false, text), |names| (true, names));
        Self { when, kind, text, names: names.rsplit('/').collect(), is_file }
    }
}

/// Table entries, indexed by their last component.
struct RunsCodeTable {
    entries: Vec<Entry>,
    plain: HashMap<&'static str, Vec<usize>>,
    /// Entries with a `*` in the last component, each with the text that precedes the `*`.
    patterns: Vec<(&'static str, usize)>,
}

impl RunsCodeTable {
    fn select(wanted: impl Fn(RunsWhen) -> bool) -> Self {
        let of = |when, kinds: &'static [Kind]| {
            let names = |kind: &'static Kind| kind.names.split_ascii_whitespace().map(move |name| (kind, name));
            kinds.iter().flat_map(names).map(move |(kind, name)| Entry::new(when, kind, name))
        };
        let start_up = START_UP.iter().chain(PROTECTED);
        let start_up = start_up.map(|name| Entry::new(RunsWhen::Opened, &START_IN_FOLDER, name));
        let all = of(RunsWhen::Opened, OPENED).chain(start_up).chain(of(RunsWhen::Built, BUILT));
        let entries: Vec<Entry> = all.filter(|entry| wanted(entry.when)).collect();
        let (mut plain, mut patterns) = (HashMap::<_, Vec<usize>>::new(), Vec::new());
        for (at, entry) in entries.iter().enumerate() {
            let last = entry.names[0];
            match last.split_once('*') {
                Some((start, _)) => patterns.push((start, at)),
                None => plain.entry(last).or_default().push(at),
            }
        }
        Self { entries, plain, patterns }
    }

    /// Returns the entries that match the last of these names.
    fn entries_at(&'static self, names: &[String], is_last: bool) -> impl Iterator<Item = &'static Entry> {
        let last = names.last().map_or("", String::as_str);
        let plain = self.plain.get(last).map_or(&[][..], Vec::as_slice);
        let patterns = self.patterns.iter().filter(move |(start, _)| last.starts_with(start)).map(|(_, at)| at);
        let entries = plain.iter().chain(patterns).map(|at| &self.entries[*at]);
        entries.filter(move |entry| {
            let mut last = names.iter().rev();
            (is_last || !entry.is_file)
                && entry.names.iter().all(|pattern| last.next().is_some_and(|name| is_like(name, pattern)))
        })
    }
}

fn fold_names(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(fold_name(&name.to_string_lossy())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.collect()
}

/// Returns whether a name matches a pattern, in which `*` stands for any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_case_folded_and_unique() {
        let mut seen = std::collections::HashSet::new();
        let kinds = OPENED.iter().map(|kind| (RunsWhen::Opened, kind)).chain(BUILT.iter().map(|kind| (RunsWhen::Built, kind)));
        for (when, kind) in kinds {
            for name in kind.names.split_ascii_whitespace() {
                assert!(seen.insert(name), "{name} is listed twice");
                let plain = name.trim_start_matches('=').replace('*', "x");
                assert!(plain.split('/').all(|name| !name.is_empty() && fold_name(name) == name), "{name}");
                let found = runs_code(&Path::new("/w/a").join(&plain), &[PathBuf::from("/w")]);
                let found = found.unwrap_or_else(|| panic!("{name} is not found"));
                assert!(found.when <= when, "{name}");
                assert!(name.split('/').count() <= 3, "{name} has more names than are compared");
            }
        }
    }

    #[test]
    fn looking_up_many_paths_gives_the_same_readers_as_single_lookups() {
        let names = [".vscode", "tasks.json", "a", "Makefile", ".github", "agents", "x.code-workspace", "src", ".envrc", "w"];
        let roots = ["/w", "/w/a", "/w/.vscode/a", "/other"].map(PathBuf::from);
        let mut together = CodeReaders::new(roots.to_vec());
        let tops = ["/w", "/", "/other", "/w/a", "w", ""];
        for top in tops.map(Path::new) {
            for one in names {
                for two in names {
                    for path in [top.join(one), top.join(one).join(two), top.join(one).join(two).join("a"), top.to_owned()] {
                        assert_eq!(together.find(&path), runs_code(&path, &roots), "{}", path.display());
                    }
                }
            }
        }
    }

    #[test]
    fn files_made_by_builds_are_in_the_table_and_may_remain_without_approval() {
        let opened: HashSet<&str> = OPENED.iter().flat_map(|kind| kind.names.split_ascii_whitespace()).collect();
        for name in MADE_BY_BUILDS.split_ascii_whitespace() {
            assert!(opened.contains(name), "{name}");
            let path = Path::new("/w").join(name.replace('*', "x"));
            assert!(opened_entry(&path).is_some() && !is_kept_only_with_approval(&path), "{name}");
        }
        for name in
            [".vscode", ".envrc", ".husky", ".githooks", "lefthook.yml", ".npmrc", "mise.toml", ".zed", "a.code-workspace"]
        {
            assert!(is_kept_only_with_approval(&Path::new("/w/a").join(name)), "{name}");
        }
        for name in [".rspec", "latexmkrc", ".latexmkrc", ".busted", ".perltidyrc", ".markdownlint.cjs", ".markdownlint-cli2.mjs"]
        {
            assert!(is_kept_only_with_approval(&Path::new("/w/a").join(name)), "{name}");
        }
        for name in ["Makefile", "src", "package.json", ".husky/pre-commit"] {
            assert!(opened_entry(&Path::new("/w/a").join(name)).is_none(), "{name}");
        }
    }

    #[test]
    fn a_star_matches_any_characters() {
        let like =
            [("a.b", "a.*"), ("x-gdb.py", "*-gdb.py"), ("compose.dev.yaml", "compose*.y*ml"), ("abc", "a*c"), ("ac", "a*c")];
        assert!(like.iter().all(|(name, pattern)| is_like(name, pattern)));
        let unlike = [("a", "a.*"), ("gdb.py", "*-gdb.py"), ("compose.json", "compose*.y*ml"), ("abd", "a*c"), ("b", "a")];
        assert!(unlike.iter().all(|(name, pattern)| !is_like(name, pattern)));
    }
}
