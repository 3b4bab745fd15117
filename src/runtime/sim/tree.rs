//! The names of a simulated file system, as the kernel has them and as the medium has them.
//!
//! Law: a change of a directory is seen at once and is durable after a sync of that directory, or,
//! by a legal accident, earlier. A power loss keeps some of the changes that were not durable:
//! either the first few of them, as a journal would, or any of them, as long as changes of one name
//! keep their order. A rename is one change, also between two directories.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::content::{Content, Draw};

pub(crate) type InodeId = u64;

pub(crate) struct Inode {
    pub(crate) id: InodeId,
    pub(crate) node: Node,
    /// The process that holds the advisory lock.
    pub(crate) lock: Cell<Option<u64>>,
    /// When a file's contents changed last, by the wall clock.
    pub(crate) modified_ms: Cell<i64>,
}

pub(crate) enum Node {
    File(RefCell<Content>),
    Directory(RefCell<Directory>),
}

type Names = BTreeMap<String, Rc<Inode>>;

#[derive(Default)]
pub(crate) struct Directory {
    names: Names,
    durable: Names,
}

type Place = (InodeId, String);

/// One change that a journal would hold as a whole.
struct Change {
    removed: Option<(Rc<Inode>, String)>,
    added: Option<(Rc<Inode>, String, Rc<Inode>)>,
}

pub(crate) struct Tree {
    root: Rc<Inode>,
    inodes_made: u64,
    /// Changes that are not durable, oldest first, with their numbers.
    pending: Vec<(u64, Change)>,
    changes_made: u64,
}

impl Inode {
    fn directory(id: InodeId) -> Rc<Self> {
        Self::of(id, Node::Directory(RefCell::new(Directory::default())))
    }

    fn of(id: InodeId, node: Node) -> Rc<Self> {
        Rc::new(Self { id, node, lock: Cell::new(None), modified_ms: Cell::new(0) })
    }

    pub(crate) fn file(&self) -> io::Result<&RefCell<Content>> {
        match &self.node {
            Node::File(content) => Ok(content),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn as_directory(&self) -> io::Result<&RefCell<Directory>> {
        match &self.node {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn look_up(&self, name: &str) -> io::Result<Option<Rc<Inode>>> {
        Ok(self.as_directory()?.borrow().names.get(name).cloned())
    }
}

impl Change {
    fn places(&self) -> Vec<Place> {
        let removed = self.removed.iter().map(|(dir, name)| (dir.id, name.clone()));
        let added = self.added.iter().map(|(dir, name, _)| (dir.id, name.clone()));
        removed.chain(added).collect()
    }

    fn apply(&self, layer: impl Fn(&mut Directory) -> &mut Names) {
        if let Some((dir, name)) = &self.removed
            && let Node::Directory(directory) = &dir.node
        {
            layer(&mut directory.borrow_mut()).remove(name);
        }
        if let Some((dir, name, inode)) = &self.added
            && let Node::Directory(directory) = &dir.node
        {
            layer(&mut directory.borrow_mut()).insert(name.clone(), inode.clone());
        }
    }
}

/// The names a path consists of, from the root. Relative paths start there, too.
fn names(path: &Path) -> Vec<&str> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().unwrap_or("\u{fffd}")),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { root: Inode::directory(0), inodes_made: 1, pending: Vec::new(), changes_made: 0 }
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<Rc<Inode>> {
        self.walk(&names(path))?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn walk(&self, names: &[&str]) -> io::Result<Option<Rc<Inode>>> {
        let mut inode = self.root.clone();
        for name in names {
            let Some(next) = inode.look_up(name)? else { return Ok(None) };
            inode = next;
        }
        Ok(Some(inode))
    }

    /// The directory in which `path` has or would have its name, and that name.
    fn parent<'p>(&self, path: &'p Path) -> io::Result<(Rc<Inode>, &'p str)> {
        let all = names(path);
        let Some((name, above)) = all.split_last() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let dir = self.walk(above)?.ok_or(io::ErrorKind::NotFound)?;
        dir.as_directory()?;
        Ok((dir, name))
    }

    fn change(&mut self, change: Change) {
        change.apply(|directory| &mut directory.names);
        self.changes_made += 1;
        self.pending.push((self.changes_made, change));
    }

    fn next_id(&mut self) -> InodeId {
        self.inodes_made += 1;
        self.inodes_made
    }

    pub(crate) fn create_file(&mut self, path: &Path) -> io::Result<Rc<Inode>> {
        let (dir, name) = self.parent(path)?;
        if dir.look_up(name)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Inode::of(self.next_id(), Node::File(RefCell::default()));
        let added = Some((dir, name.to_owned(), inode.clone()));
        self.change(Change { removed: None, added });
        Ok(inode)
    }

    /// Makes the directories of `path` that are missing.
    pub(crate) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let mut dir = self.root.clone();
        for name in names(path) {
            dir = match dir.look_up(name)? {
                Some(next) => next,
                None => {
                    let next = Inode::directory(self.next_id());
                    let added = Some((dir.clone(), name.to_owned(), next.clone()));
                    self.change(Change { removed: None, added });
                    next
                }
            };
        }
        dir.as_directory().map(|_| ())
    }

    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<(String, Rc<Inode>)>> {
        let dir = self.find(path)?;
        let directory = dir.as_directory()?.borrow();
        Ok(directory.names.iter().map(|(name, inode)| (name.clone(), inode.clone())).collect())
    }

    pub(crate) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let inode = dir.look_up(name)?.ok_or(io::ErrorKind::NotFound)?;
        inode.file()?;
        self.change(Change { removed: Some((dir, name.to_owned())), added: None });
        Ok(())
    }

    pub(crate) fn remove_empty_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let inode = dir.look_up(name)?.ok_or(io::ErrorKind::NotFound)?;
        if !inode.as_directory()?.borrow().names.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change(Change { removed: Some((dir, name.to_owned())), added: None });
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let inode = from_dir.look_up(from_name)?.ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = to_dir.look_up(to_name)? {
            if Rc::ptr_eq(&replaced, &inode) {
                return Ok(());
            }
            match (&inode.node, &replaced.node) {
                (Node::File(_), Node::File(_)) => {}
                (Node::Directory(_), Node::Directory(over)) => {
                    if !over.borrow().names.is_empty() {
                        return Err(io::ErrorKind::DirectoryNotEmpty.into());
                    }
                }
                (Node::File(_), Node::Directory(_)) => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                (Node::Directory(_), Node::File(_)) => {
                    return Err(io::ErrorKind::NotADirectory.into());
                }
            }
        }
        let removed = Some((from_dir, from_name.to_owned()));
        self.change(Change { removed, added: Some((to_dir, to_name.to_owned(), inode)) });
        Ok(())
    }

    /// The number of the newest change.
    pub(crate) fn newest_change(&self) -> u64 {
        self.changes_made
    }

    /// Makes the changes of one directory durable, up to change `newest`, and with each whatever
    /// happened earlier to the names it touches.
    pub(crate) fn sync_dir(&mut self, dir: &Inode, newest: u64) {
        let mut touched: BTreeSet<Place> = BTreeSet::new();
        let mut needed: BTreeSet<u64> = BTreeSet::new();
        for (number, change) in self.pending.iter().rev() {
            let places = change.places();
            let in_dir = places.iter().any(|(id, _)| *id == dir.id);
            let before_needed = places.iter().any(|place| touched.contains(place));
            if *number <= newest && (in_dir || before_needed) {
                needed.insert(*number);
                touched.extend(places);
            }
        }
        self.persist(|number, _| needed.contains(&number));
    }

    /// Applies the chosen changes to the medium; the others stay pending.
    fn persist(&mut self, mut chosen: impl FnMut(u64, &Change) -> bool) {
        let mut left = Vec::new();
        for (number, change) in std::mem::take(&mut self.pending) {
            if chosen(number, &change) {
                change.apply(|directory| &mut directory.durable);
            } else {
                left.push((number, change));
            }
        }
        self.pending = left;
    }

    pub(crate) fn make_durable(&mut self) {
        self.persist(|_, _| true);
    }

    /// Settles which names survive a power loss.
    pub(crate) fn on_power_loss(&mut self, draw: &Draw) {
        let count = self.pending.len() as u64;
        if draw(2) == 0 {
            let mut first = draw(count + 1);
            self.persist(|_, _| {
                let keep = first > 0;
                first = first.saturating_sub(1);
                keep
            });
        } else {
            let odds = draw(5);
            let mut dropped: BTreeSet<Place> = BTreeSet::new();
            self.persist(|_, change| {
                let places = change.places();
                let blocked = places.iter().any(|place| dropped.contains(place));
                let keep = !blocked && draw(4) < odds;
                if !keep {
                    dropped.extend(places);
                }
                keep
            });
        }
        self.pending.clear();
        self.visit(&mut |_, inode| {
            if let Node::Directory(directory) = &inode.node {
                let mut directory = directory.borrow_mut();
                directory.names = directory.durable.clone();
            }
        });
    }

    /// Bytes that the files have which are in the tree now. Asked for on every write, so nothing is
    /// copied on the way.
    pub(crate) fn allocated(&self) -> u64 {
        fn below(inode: &Inode) -> u64 {
            match &inode.node {
                Node::File(content) => content.borrow().allocated(),
                Node::Directory(it) => it.borrow().names.values().map(|each| below(each)).sum(),
            }
        }
        below(&self.root)
    }

    /// Visits everything below the root, each directory before what it holds as it then is.
    pub(crate) fn visit(&self, see: &mut dyn FnMut(&Path, &Rc<Inode>)) {
        fn below(path: &mut PathBuf, inode: &Rc<Inode>, see: &mut dyn FnMut(&Path, &Rc<Inode>)) {
            see(path, inode);
            let Node::Directory(directory) = &inode.node else { return };
            let names = directory.borrow().names.clone();
            for (name, child) in names {
                path.push(&name);
                below(path, &child, see);
                path.pop();
            }
        }
        below(&mut PathBuf::from("/"), &self.root, see);
    }
}
