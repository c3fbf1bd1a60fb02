// Package badger owns the store that keeps everything in one folder, in an embedded Badger database.
//
// Documents live in memory and on disk: reads never touch the disk, a change is written, synced together with all that
// wait at that moment (DATA-7), and then acknowledged. Events and snapshots live on disk alone. Nothing is acknowledged that
// a kill can take back (DATA-2), except journal events, which are not synced and survive a kill through the page cache.
//
// Badger maps sparse files into memory, and a full disk kills the process that writes to such a mapping. So the store
// watches the free space (DATA-6): below a reserve it closes Badger and goes on in memory, degraded (DATA-5), until there
// is room again; then it opens Badger, writes what it had to keep in memory, and tells whoever asked to be notified.
package badger
