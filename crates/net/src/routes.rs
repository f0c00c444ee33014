//! Routes as one flat list of links: a packet carries only its place in it.

/// No further link: the packet has arrived.
pub const END: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub struct Routes {
    links: Vec<u32>,
}

impl Routes {
    /// Adds a route; where a packet that takes it begins.
    pub fn add(&mut self, route: &[usize]) -> u32 {
        let start = self.links.len() as u32;
        self.links.extend(route.iter().map(|&link| link as u32));
        self.links.push(END);
        start
    }

    /// The link to take at a place, or [`END`].
    pub fn link(&self, at: u32) -> u32 {
        self.links[at as usize]
    }
}
