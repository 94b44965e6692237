# What goes onto a system, and the packages.
include(CMakePackageConfigHelpers)

install(TARGETS tegula_shared EXPORT tegulaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "tegula*.h")
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tegula
        FILES_MATCHING PATTERN "*.json" PATTERN "*.onnx")
# The pages, the README beside them: their links lead to what is installed (cmake/pages.cmake).
set(pages_dir ${PROJECT_BINARY_DIR}/installed_pages)
install(CODE "
  set(SOURCE [==[${PROJECT_SOURCE_DIR}]==])
  set(STAGE [==[${pages_dir}]==])
  set(DOCDIR [==[${CMAKE_INSTALL_DOCDIR}]==])
  set(INCLUDEDIR [==[${CMAKE_INSTALL_INCLUDEDIR}]==])
  set(PRESETDIR [==[${CMAKE_INSTALL_DATADIR}/tegula]==])
  include([==[${PROJECT_SOURCE_DIR}/cmake/pages.cmake]==])")
install(DIRECTORY ${pages_dir}/ DESTINATION ${CMAKE_INSTALL_DOCDIR})

# For pkg-config and for find_package(tegula). Both find the rest from where they lie themselves,
# so what was installed or packed can be moved.
file(RELATIVE_PATH TG_PREFIX_FROM_PC "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file(cmake/tegula.pc.in ${PROJECT_BINARY_DIR}/tegula.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tegula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)
configure_package_config_file(cmake/tegulaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tegulaConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tegulaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT tegulaTargets NAMESPACE tegula:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/tegulaConfig.cmake
              ${PROJECT_BINARY_DIR}/tegulaConfigVersion.cmake DESTINATION ${package_dir})

set(CMAKE_SKIP_PACKAGE_ALL_DEPENDENCY ON) # a package needs no tests
set(CPACK_PACKAGE_NAME tegula)
set(CPACK_PACKAGE_VENDOR "tegula developers")
set(CPACK_PACKAGE_CONTACT "tegula developers <tegula@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
find_program(TG_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(TG_DPKG_SHLIBDEPS)
if(TG_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  if(TG_LIBZIP_NAME MATCHES "^libzip[.]so[.]([0-9]+)$") # opened when it is needed, so dpkg-shlibdeps does not see it
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libzip${CMAKE_MATCH_1})
  endif()
endif()
include(CPack)
