// A source without contents: see meson.build.
