// Package devkit is what the author of a plugin has outside of a running gateway: it checks, packs, tests, inspects, starts
// and builds plugin files (PLG-2, PLG-6 to PLG-8, ABI-2.3), and judges recorded answers. It owns no rule of its own: what a
// file is worth it asks the plugin runtime, with a folder that nobody watches for and no listener.
package devkit
