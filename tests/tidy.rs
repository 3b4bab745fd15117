//! The house rules that neither the compiler nor clippy can say, over every file of the repository.
//!
//! A rule is a function from the tree of files to a list of findings, each naming file and line.
//! `RULES` pairs every rule with a small tree that breaks it and, where the line is fine, one that
//! just keeps it: a rule that cannot fail does not get past `every_rule_catches_a_breach`.
//! Absent on purpose: what rustfmt and clippy already refuse, and any list of exceptions by file.

#![expect(clippy::expect_used, reason = "an unreadable repository ends the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
const LINE_COLUMNS_MAX: usize = 100;
/// Where the tables of configuration keys and what is read from them live.
const CONFIGS: &str = "src/metadata/configs";

/// Folder of a crate, and the crates of this workspace that it may depend on.
const IMPORTS: &[(&str, &[&str])] = &[
    ("src/protocol", &[]),
    ("src/metrics", &[]),
    ("src/runtime", &[]),
    ("src/storage", &["protocol", "runtime", "metrics"]),
    ("src/metadata", &["protocol"]),
    ("src/quorum", &["metadata"]),
    ("src/coordinator", &["protocol", "metadata"]),
    (
        "src/broker",
        &["protocol", "metrics", "runtime", "storage", "metadata", "quorum", "coordinator"],
    ),
    ("perf", &["protocol", "runtime", "metrics"]),
    ("", &["broker", "perf"]),
];

/// Crates without a world: no I/O, no clock, no unsafe code.
const PURE: &[&str] =
    &["src/protocol", "src/metrics", "src/metadata", "src/quorum", "src/coordinator"];

const TOP_LEVEL: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "benches",
    "clippy.toml",
    "docs",
    "perf",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "src",
    "tests",
];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "impl", "types", "core",
    "shared", "stuff",
];

/// Words that belong to how a text came about, not to what it says.
const FOREIGN_WORDS: &[&str] = &["agent", "agents", "assistant", "chatbot", "llm"];

/// Notes to oneself.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// One text file: its path from the root, its text, and for Rust the text with comments and the
/// insides of literals blanked out, line for line.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let code = if path.ends_with(".rs") { blank(text) } else { text.to_owned() };
        Source { path: path.to_owned(), text: text.to_owned(), code }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Rust that ends up in the program: neither test, nor benchmark, nor fuzz target.
    fn is_production(&self) -> bool {
        let folders = || self.path.split('/').rev().skip(1);
        self.is_rust() && !folders().any(|f| matches!(f, "tests" | "benches" | "examples"))
    }

    fn at(&self, line: usize, what: impl AsRef<str>) -> String {
        format!("{}:{line}: {}", self.path, what.as_ref())
    }
}

type Rule = fn(&[Source]) -> Vec<String>;
type Files = &'static [(&'static str, &'static str)];

/// Rule, what it is called, files that break it, files that keep it.
const RULES: &[(&str, Rule, Files, Files)] = &[
    ("functions fit a screen", functions_fit, BAD_FUNCTION, GOOD_FUNCTION),
    ("files are short", files_are_short, BAD_FILE, GOOD_FUNCTION),
    ("lines are short", lines_are_short, BAD_LINE, GOOD_FUNCTION),
    ("files state their law", files_have_heads, BAD_HEAD, GOOD_FUNCTION),
    ("names say something", names_speak, BAD_NAME, GOOD_NAME),
    ("lints are expected, not allowed", no_bare_allow, BAD_ALLOW, GOOD_ALLOW),
    ("exports are named", no_glob_exports, BAD_GLOB, GOOD_GLOB),
    ("imports point one way", imports_point_one_way, BAD_IMPORT, GOOD_IMPORT),
    ("only the runtime names its executor", executor_is_hidden, BAD_EXECUTOR, GOOD_EXECUTOR),
    ("pure crates forbid unsafe code", pure_crates_are_safe, BAD_PURE, GOOD_PURE),
    ("crates share the lints", crates_share_lints, BAD_LINTS, GOOD_LINTS),
    ("tests live next door", tests_live_next_door, BAD_INLINE, GOOD_INLINE),
    ("nothing is unfinished", nothing_is_unfinished, BAD_UNFINISHED, GOOD_UNFINISHED),
    ("tests wait for conditions", tests_do_not_sleep, BAD_SLEEP, GOOD_SLEEP),
    ("documents name files that exist", documents_are_true, BAD_DOCUMENT, GOOD_DOCUMENT),
    ("words belong here", words_belong, BAD_WORD, GOOD_WORD),
    ("no config key is dead", config_keys_live, BAD_CONFIG, GOOD_CONFIG),
    ("the top level is as drawn", top_level_is_as_drawn, BAD_TOP, GOOD_TOP),
];

#[test]
fn the_repository_keeps_the_rules() {
    let files = repository();
    assert!(files.iter().any(|f| f.path == "src/main.rs"), "not run in the repository");
    let mut findings = Vec::new();
    for (name, rule, _, _) in RULES {
        findings.extend(rule(&files).into_iter().map(|f| format!("{f}   [{name}]")));
    }
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_rule_catches_a_breach() {
    for (name, rule, bad, _) in RULES {
        for file in *bad {
            assert!(!rule(&sources(&[*file])).is_empty(), "\"{name}\" lets {} pass", file.0);
        }
    }
}

#[test]
fn every_rule_lets_good_files_pass() {
    for (name, rule, _, good) in RULES {
        assert_eq!(rule(&sources(good)), Vec::<String>::new(), "\"{name}\"");
    }
}

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let text = "a /* b /* c */ d */ e // f\n\"g\\\"h\" 'i' 'life r#\"j\"k\"# b\"l\" x.rs\n'\\'' m";
    let code = blank(text);
    assert_eq!(code.lines().count(), 3);
    for gone in ["c", "d", "f", "g", "h", "j", "k", "l"] {
        assert!(!code.split_whitespace().any(|w| w == gone), "{gone} in {code}");
    }
    for kept in ["a ", " e ", "'life", "x.rs", " m"] {
        assert!(code.contains(kept), "{kept} not in {code}");
    }
    assert_eq!(code.len(), text.len());
}

#[test]
fn a_function_ends_at_its_own_brace() {
    let lengths = functions("fn a() { if x { y } }\n\nfn b<T>(t: [u8; 4])\nwhere T: X,\n{\n1\n}\n");
    assert_eq!(lengths, [("a".to_owned(), 1, 1), ("b".to_owned(), 3, 5)]);
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    let long = |text: &str| match text {
        LONG_FUNCTION => format!("//! x\nfn f() {{\n{}}}\n", "x();\n".repeat(FUNCTION_LINES_MAX)),
        LONG_FILE => format!("//! x\n{}", "use x;\n".repeat(FILE_LINES_MAX)),
        LONG_LINE => format!("//! x\n// {}\n", "x".repeat(LINE_COLUMNS_MAX - 2)),
        text => text.to_owned(),
    };
    files.iter().map(|(path, text)| Source::new(path, &long(text))).collect()
}

fn repository() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(root, root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let built = name.starts_with("target") || name == "node_modules" || name == "__pycache__";
        if built || (name.starts_with('.') && name != ".ci" && name != ".cargo") {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let inside = path.strip_prefix(root).expect("a path below the root");
            files.push(Source::new(&inside.to_string_lossy(), &text));
        }
    }
}

// ------------------------------------------------------------------------------------- the rules

fn functions_fit(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (name, line, lines) in functions(&file.code) {
            if lines > FUNCTION_LINES_MAX {
                findings.push(file.at(line, format!("{name} has {lines} lines of code")));
            }
        }
    }
    findings
}

fn files_are_short(files: &[Source]) -> Vec<String> {
    let long = |f: &&Source| f.is_production() && f.text.lines().count() > FILE_LINES_MAX;
    files.iter().filter(long).map(|f| f.at(FILE_LINES_MAX, "more than 800 lines")).collect()
}

fn lines_are_short(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (number, line) in numbered(&file.text) {
            if line.chars().count() > LINE_COLUMNS_MAX {
                findings.push(file.at(number, "more than 100 columns"));
            }
        }
    }
    findings
}

fn files_have_heads(files: &[Source]) -> Vec<String> {
    let headless = |f: &&Source| f.is_production() && !f.text.starts_with("//!");
    files.iter().filter(headless).map(|f| f.at(1, "does not begin with //!")).collect()
}

fn names_speak(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if EMPTY_NAMES.contains(&part) || part.ends_with('2') {
                findings.push(file.at(1, format!("the name {part} says nothing")));
            }
        }
        for (number, line) in numbered(&file.code) {
            let inline = words_after(line, "mod").filter(|_| line.trim_end().ends_with('{'));
            for name in inline.filter(|n| EMPTY_NAMES.contains(n) || n.ends_with('2')) {
                findings.push(file.at(number, format!("the module name {name} says nothing")));
            }
        }
    }
    findings
}

fn no_bare_allow(files: &[Source]) -> Vec<String> {
    code_without(files, Source::is_rust, &["#[allow", "#![allow"])
}

fn no_glob_exports(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (number, line) in numbered(&file.code) {
            if line.trim_start().starts_with("pub") && line.contains("use ") && line.contains("::*")
            {
                findings.push(file.at(number, "exports whatever there is"));
            }
        }
    }
    findings
}

fn imports_point_one_way(files: &[Source]) -> Vec<String> {
    let ours: Vec<&str> = IMPORTS.iter().filter_map(|(f, _)| f.rsplit('/').next()).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| is_member_manifest(&f.path)) {
        let folder = file.path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let Some((_, may)) = IMPORTS.iter().find(|(f, _)| *f == folder) else {
            findings.push(file.at(1, "this crate is not in the table of who may import whom"));
            continue;
        };
        for (number, name) in dependencies(&file.text) {
            if ours.contains(&name.as_str()) && !may.contains(&name.as_str()) {
                findings.push(file.at(number, format!("may not depend on {name}")));
            }
        }
    }
    findings
}

fn executor_is_hidden(files: &[Source]) -> Vec<String> {
    let elsewhere = |f: &Source| {
        let rust = f.is_rust() && f.path != "tests/tidy.rs";
        let manifest = is_member_manifest(&f.path) && f.path != "Cargo.toml";
        (rust || manifest) && !f.path.starts_with("src/runtime/")
    };
    code_without(files, elsewhere, &["glommio"])
}

fn pure_crates_are_safe(files: &[Source]) -> Vec<String> {
    let is_head = |f: &&Source| PURE.iter().any(|p| f.path == format!("{p}/lib.rs"));
    let unsafe_head = |f: &&Source| is_head(f) && !f.code.contains("#![forbid(unsafe_code)]");
    files.iter().filter(unsafe_head).map(|f| f.at(1, "does not forbid unsafe code")).collect()
}

fn crates_share_lints(files: &[Source]) -> Vec<String> {
    let lax =
        |f: &&Source| is_member_manifest(&f.path) && !f.text.contains("[lints]\nworkspace = true");
    files.iter().filter(lax).map(|f| f.at(1, "does not take the workspace's lints")).collect()
}

fn tests_live_next_door(files: &[Source]) -> Vec<String> {
    code_without(files, Source::is_production, &["cfg(test)", "#[test]"])
}

fn nothing_is_unfinished(files: &[Source]) -> Vec<String> {
    code_without(files, Source::is_rust, &["todo!", "unimplemented!", "#[ignore"])
}

fn tests_do_not_sleep(files: &[Source]) -> Vec<String> {
    // The blocking client of the command line may pause between tries; nothing else may.
    let may_not =
        |f: &Source| f.is_rust() && !CLIENT_FOLDERS.iter().any(|it| f.path.starts_with(it));
    code_without(files, may_not, &["thread::sleep"])
}

fn documents_are_true(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    let is_document =
        |f: &&Source| f.path.ends_with(".md") && !f.path.starts_with("docs/decisions");
    for file in files.iter().filter(is_document) {
        for (number, line) in numbered(&file.text) {
            for path in named_files(line).filter(|p| !exists(files, p)) {
                findings.push(file.at(number, format!("there is no {path}")));
            }
        }
    }
    findings
}

fn words_belong(files: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.path != "tests/tidy.rs" && !f.path.contains("lock")) {
        for (number, line) in numbered(&file.text) {
            let mut words = line.split(|c: char| !c.is_alphanumeric());
            let foreign = |w: &str| FOREIGN_WORDS.contains(&w.to_lowercase().as_str());
            if let Some(word) = words.find(|w| NOTES.contains(w) || foreign(w)) {
                findings.push(file.at(number, format!("\"{word}\" does not belong here")));
            }
        }
    }
    findings
}

/// A key that the tables call honoured is read somewhere, and what it is read into is used.
fn config_keys_live(files: &[Source]) -> Vec<String> {
    let (tables, others): (Vec<&Source>, Vec<&Source>) =
        files.iter().filter(|f| f.is_production()).partition(|f| is_config_table(&f.path));
    let keys = || tables.iter().flat_map(|t| config_keys(&t.text).map(move |key| (*t, key)));
    let mut findings = Vec::new();
    for (table, key) in keys().filter(|(_, key)| key.is_honoured) {
        let quoted = format!("\"{}\"", key.name);
        let is_default = keys().any(|(_, other)| other.synonyms.contains(&quoted));
        if !is_default && !others.iter().any(|f| f.text.contains(&quoted)) {
            findings.push(table.at(1, format!("{} is honoured, but nothing reads it", key.name)));
        }
    }
    let settings = |f: &&&Source| f.path.starts_with(CONFIGS) && f.path.ends_with("_settings.rs");
    for file in others.iter().filter(settings) {
        for (field, name) in settings_read(&file.text) {
            let is_idle = keys().any(|(_, key)| key.name == name && !key.is_honoured);
            let used = |f: &&Source| {
                let own = if f.path.starts_with(CONFIGS) { "self." } else { "." };
                is_read(&f.code, own, field)
            };
            if !is_idle && !others.iter().any(used) {
                findings.push(file.at(1, format!("{field} is read from {name}, but never used")));
            }
        }
    }
    findings
}

fn top_level_is_as_drawn(files: &[Source]) -> Vec<String> {
    let mut tops: BTreeMap<&str, &Source> = BTreeMap::new();
    for file in files {
        tops.entry(file.path.split('/').next().unwrap_or("")).or_insert(file);
    }
    let stray = |(top, _): &(&str, &Source)| !top.starts_with('.') && !TOP_LEVEL.contains(top);
    tops.into_iter().filter(stray).map(|(top, f)| f.at(1, format!("{top} is new here"))).collect()
}

// ------------------------------------------------------------------------- how files are looked at

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn code_without(files: &[Source], of: impl Fn(&Source) -> bool, banned: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| of(f)) {
        for (number, line) in numbered(&file.code) {
            for word in banned.iter().filter(|w| line.contains(**w)) {
                findings.push(file.at(number, format!("{word} is not for here")));
            }
        }
    }
    findings
}

fn is_config_table(path: &str) -> bool {
    path.starts_with(CONFIGS) && (path.ends_with("_keys.rs") || path.contains("_keys/"))
}

/// One entry of a table of configs.
struct TableKey<'a> {
    name: &'a str,
    is_honoured: bool,
    synonyms: &'a str,
}

fn config_keys(table: &str) -> impl Iterator<Item = TableKey<'_>> {
    table.split("ConfigKey::").skip(1).filter_map(|entry| {
        let (call, rest) = entry.split_once('(')?;
        let name = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        let idle = [".inert(", ".refused(", ".needs("].iter().any(|mark| rest.contains(mark));
        let synonyms = rest.split_once(".synonyms(").map_or("", |(_, after)| after);
        let synonyms = synonyms.split(')').next().unwrap_or("");
        let is_entry = call.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_entry.then_some(TableKey { name, is_honoured: !idle, synonyms })
    })
}

/// Pairs of a field and the key it is read from: `field: from.kind("key")`.
fn settings_read(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(": from").filter_map(|(at, _)| {
        let before = text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        let value = text[at..].split(",\n").next()?;
        let name = value.split_once('"')?.1.split('"').next()?;
        Some((before, name))
    })
}

/// Whether the code reads this field of something: `.field`, not a call and not a longer name.
fn is_read(code: &str, from: &str, field: &str) -> bool {
    code.match_indices(field).any(|(at, _)| {
        let end = code[at + field.len()..].bytes().next();
        code[..at].trim_end().ends_with(from) && !end.is_some_and(is_word)
    })
}

fn is_member_manifest(path: &str) -> bool {
    let folder = path.strip_suffix("Cargo.toml").map(|f| f.trim_end_matches('/'));
    folder.is_some_and(|f| f.is_empty() || f == "perf" || f.starts_with("src/"))
}

/// Names in every table of dependencies, with their lines. Tests' own are included, but for the
/// root's: its tests and benchmarks drive every crate.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let is_root = manifest.contains("[workspace]");
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in numbered(manifest) {
        if let Some(table) = line.trim().strip_prefix('[') {
            let table = table.trim_end_matches(']');
            let exempt = table.starts_with("workspace") || is_root && table == "dev-dependencies";
            inside = table.ends_with("dependencies") && !exempt;
        } else if inside && line.contains('=') {
            let name = line.split(['=', '.']).next().unwrap_or("").trim();
            found.push((number, name.to_owned()));
        }
    }
    found
}

/// What a line of prose names as a file: `src/x.rs` in backticks, or the target of a link.
fn named_files(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let linked = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    quoted.chain(linked).filter_map(|word| {
        let word = word.split('#').next().unwrap_or("").trim_start_matches("./");
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let top = word.split('/').next().unwrap_or("");
        let is_folder = word.contains('/') && (TOP_LEVEL.contains(&top) || top == ".ci");
        let is_file = [".rs", ".md"].iter().any(|end| word.ends_with(end));
        (word.chars().all(plain) && (is_folder || is_file)).then_some(word)
    })
}

fn exists(files: &[Source], path: &str) -> bool {
    let path = path.trim_end_matches('/');
    files.iter().any(|f| {
        let below = f.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        below || f.path == path || f.path.ends_with(&format!("/{path}"))
    })
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// The identifiers that follow a keyword on this line.
fn words_after<'a>(line: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let mut before = "";
    words.filter(move |word| std::mem::replace(&mut before, word) == keyword)
}

/// Every function with a body: name, line, and lines of code from `fn` to its closing brace.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| is_word(*c as u8)).collect();
        if let (false, Some(end)) = (name.is_empty(), body_end(bytes, at)) {
            let lines = code[at..end].lines().filter(|l| !l.trim().is_empty()).count();
            found.push((name, code[..at].matches('\n').count() + 1, lines));
        }
    }
    found
}

/// Just behind the closing brace of the function that starts at `at`; None for a mere signature.
fn body_end(code: &[u8], at: usize) -> Option<usize> {
    let (mut round, mut curly) = (0i32, 0i32);
    for (index, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 && round == 0 {
                    return Some(index + 1);
                }
            }
            b';' if curly == 0 && round == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The text with comments and the insides of literals replaced by blanks of the same length.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in code[at..end].iter_mut().filter(|b| **b != b'\n') {
            *byte = b' ';
        }
        at = end;
    }
    String::from_utf8(code).expect("blanks at character boundaries")
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none begins there.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let fresh = at == 0 || !is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    let raw = rest.iter().skip(1).take_while(|b| **b == b'#').count();
    if rest[0] == b'r' && rest.get(1 + raw) == Some(&b'"') && (fresh || bytes[at - 1] == b'b') {
        let close = [b"\"".as_slice(), &b"#".repeat(raw)].concat();
        let body = &rest[2 + raw..];
        let end = body.windows(close.len()).position(|w| w == close).unwrap_or(body.len());
        return (at + 2 + raw + end + close.len()).min(bytes.len());
    }
    match rest[0] {
        b'"' => at + quoted(rest),
        b'\'' if rest.get(1) == Some(&b'\\') => at + quoted(rest),
        b'\'' => at + character(rest),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != rest[0] {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    let width = rest.get(1).map_or(0, |first| match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    });
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

// ------------------------------------------------------- small trees that break or keep a rule

const LONG_FUNCTION: &str = "a function of too many lines";
const LONG_FILE: &str = "a file of too many lines";
const LONG_LINE: &str = "a line of too many columns";

const BAD_FUNCTION: Files = &[("src/a/b.rs", LONG_FUNCTION), ("tests/b.rs", LONG_FUNCTION)];
const GOOD_FUNCTION: Files = &[
    ("src/a/b.rs", "//! Law.\nfn f() {\n    x();\n}\n"),
    ("src/a/tests/c.rs", "fn f() {\n    \"//! not a head\";\n}\n"),
];
const BAD_FILE: Files = &[("src/a/b.rs", LONG_FILE)];
const BAD_LINE: Files = &[("src/a/b.rs", LONG_LINE), ("src/a/tests/b.rs", LONG_LINE)];
const BAD_HEAD: Files = &[("src/a/b.rs", "use x;\n"), ("src/a/c.rs", "// x\n//! y\n")];
const BAD_NAME: Files = &[
    ("src/a/util.rs", ""),
    ("src/helpers/b.rs", ""),
    ("src/a/log2.rs", ""),
    ("src/a/b.rs", "pub mod misc {\n}\n"),
];
const GOOD_NAME: Files = &[("src/a/offset.rs", "mod topic;\npub mod offset {}\n")];
const BAD_ALLOW: Files = &[("src/a.rs", "#[allow(x)]"), ("tests/b.rs", "#![allow(x)]")];
const GOOD_ALLOW: Files = &[("src/a.rs", "#[expect(x, reason = \"#[allow\")]")];
const BAD_GLOB: Files =
    &[("src/a.rs", "pub use b::*;"), ("src/c.rs", "    pub(crate) use b::{c::*, d};")];
const GOOD_GLOB: Files = &[("src/a.rs", "pub use b::C;\nuse d::C;")];
const BAD_IMPORT: Files = &[
    ("src/protocol/Cargo.toml", "[dependencies]\nruntime = { workspace = true }\n"),
    ("src/quorum/Cargo.toml", "[dev-dependencies]\nstorage.workspace = true\n"),
    ("src/new/Cargo.toml", "[package]\nname = \"new\"\n"),
];
const GOOD_IMPORT: Files = &[
    ("src/storage/Cargo.toml", "[dependencies]\nruntime = { workspace = true }\nbytes = \"1\"\n"),
    ("Cargo.toml", "[workspace.dependencies]\nprotocol = { path = \"src/protocol\" }\n"),
];
const BAD_EXECUTOR: Files = &[
    ("src/broker/a.rs", "use glommio::Task;"),
    ("src/storage/Cargo.toml", "glommio = { workspace = true }"),
];
const GOOD_EXECUTOR: Files = &[
    ("src/runtime/glommio/a.rs", "use glommio::Task;"),
    ("src/broker/a.rs", "// why not glommio's own timers"),
];
const BAD_PURE: Files = &[("src/quorum/lib.rs", "//! Raft.\n// #![forbid(unsafe_code)]\n")];
const GOOD_PURE: Files = &[
    ("src/quorum/lib.rs", "//! Raft.\n#![forbid(unsafe_code)]\n"),
    ("src/runtime/lib.rs", "//! The world.\n"),
];
const BAD_LINTS: Files = &[("src/a/Cargo.toml", "[package]\nname = \"a\"\n")];
const GOOD_LINTS: Files = &[("src/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n")];
const BAD_INLINE: Files = &[
    ("src/a/b.rs", "//! x\n#[cfg(test)]\nmod tests {}\n"),
    ("perf/b.rs", "//! x\n#[test]\nfn f() {}\n"),
];
const GOOD_INLINE: Files = &[("src/a/tests/b.rs", "#[test]\nfn f() {}\n")];
const BAD_UNFINISHED: Files = &[
    ("src/a.rs", "fn f() { todo!() }"),
    ("src/b.rs", "fn f() { unimplemented!(\"later\") }"),
    ("tests/c.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}"),
];
const GOOD_UNFINISHED: Files = &[("src/a.rs", "fn f() { g(\"todo!\") }")];
const CLIENT_FOLDERS: [&str; 2] = ["src/broker/cli/", "src/broker/client/"];
const BAD_SLEEP: Files = &[("src/a/tests/b.rs", "std::thread::sleep(x);")];
const GOOD_SLEEP: Files = &[("src/a/tests/b.rs", "time::sleep(virtual_second).await;")];
const BAD_DOCUMENT: Files = &[
    ("README.md", "See `src/broker/lib.rs`."),
    ("ARCHITECTURE.md", "See [the log](src/storage/)."),
    ("docs/a.md", "See `gone.rs`."),
];
const GOOD_DOCUMENT: Files = &[
    ("README.md", "See `src/a/b.rs`, `a/b.rs`,\n[c](src/a/), `<data>/x.md` and `/metrics`."),
    ("src/a/b.rs", ""),
];
const BAD_WORD: Files = &[("README.md", "Ask your assistant."), ("src/a.rs", "// FIXME later")];
const GOOD_WORD: Files = &[("README.md", "A hackneyed word, a fetch session.")];
const BAD_CONFIG: Files = &[
    ("src/metadata/configs/topic_keys.rs", "ConfigKey::new(\"retention.ms\", Kind::Long, \"1\"),"),
    (
        "src/metadata/configs/topic_settings.rs",
        "Self {\n    retention_ms: from.long(\"retention.ms\"),\n}\n",
    ),
];
const GOOD_CONFIG: Files = &[
    (
        "src/metadata/configs/topic_keys.rs",
        "ConfigKey::new(\"retention.ms\", K, \"1\").synonyms(&[\"log.retention.ms\"]),\n\
         ConfigKey::new(\"no.such\", K, \"1\").inert(reason::NONE),",
    ),
    ("src/metadata/configs/broker_keys/log.rs", "ConfigKey::new(\"log.retention.ms\", K, \"1\"),"),
    (
        "src/metadata/configs/topic_settings.rs",
        "Self {\n    retention_ms: from.long(\"retention.ms\"),\n}\n",
    ),
    ("src/broker/logs.rs", "let limit = settings\n    .retention_ms;"),
];
const BAD_TOP: Files = &[("notes.txt", ""), ("crates/a/lib.rs", "")];
const GOOD_TOP: Files = &[("src/main.rs", ""), (".ci/run", ""), ("README.md", "")];
